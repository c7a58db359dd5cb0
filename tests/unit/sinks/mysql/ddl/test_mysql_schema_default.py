"""The default of a schema is what upstream's CREATE DATABASE gives it."""

import pytest

from applier.sinks.mysql.ddl.schema_default import SchemaDefault, default_of


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("", ("utf8mb4", "utf8mb4_bin")),
        (" CHARACTER SET utf8mb4", ("utf8mb4", "utf8mb4_bin")),
        (" DEFAULT CHARSET = 'LATIN1'", ("latin1", "latin1_bin")),
        (" COLLATE utf8mb4_general_ci", ("utf8mb4", "utf8mb4_general_ci")),
        (" CHARACTER SET = utf8mb4 COLLATE = `utf8mb4_unicode_ci`", ("utf8mb4", "utf8mb4_unicode_ci")),
        (" COLLATE utf8mb4_0900_ai_ci CHARACTER SET utf8mb4", ("utf8mb4", "utf8mb4_0900_ai_ci")),
        (" CHARACTER SET gbk", ("gbk", "gbk_chinese_ci")),
        (" CHARACTER SET binary", ("binary", "")),
        (" /*!40100 DEFAULT CHARACTER SET utf8mb4 */", ("utf8mb4", "utf8mb4_bin")),
        (" /*T![placement] PLACEMENT POLICY=`p` */", ("utf8mb4", "utf8mb4_bin")),
    ],
)
def test_the_statement_says_the_default_or_tidb_does(options: str, wanted: tuple[str, str]) -> None:
    assert default_of(f"CREATE DATABASE `shop`{options}") == SchemaDefault(*wanted)


def test_a_schema_whose_name_is_a_word_of_the_options_has_the_default() -> None:
    assert default_of("CREATE DATABASE charset COLLATE latin1_bin") == SchemaDefault("latin1", "latin1_bin")


def test_both_names_of_utf8mb3_are_one() -> None:
    assert SchemaDefault("utf8", "utf8_bin").is_same_as(SchemaDefault("utf8mb3", "utf8mb3_bin"))
    assert not SchemaDefault("utf8", "utf8_bin").is_same_as(SchemaDefault("utf8mb4", "utf8mb4_bin"))
    assert not SchemaDefault("utf8mb4", "utf8mb4_bin").is_same_as(SchemaDefault("utf8mb4", "utf8mb4_general_ci"))
    assert SchemaDefault("gbk").is_same_as(SchemaDefault("gbk", "gbk_chinese_ci"))
