"""The section ``[ddl]``: policies by type, beside its own keys."""

import pytest

from applier.model.errors import ConfigError
from tests.builders.configuration import MINIMAL, load

SERVER = MINIMAL.replace("sqlite:///replica.db", "mysql+pymysql://applier@db/")


def test_policies_stand_beside_the_keys_of_the_section(tmp_path):
    config = load(
        tmp_path, SERVER + '[ddl]\nbackground = true\ndrop_table = "stop"\n[ddl.collations]\n"UTF8MB4_0900_AI_CI" = "uca1400_ai_ci"\n'
    )
    assert config.ddl.policies == {"drop_table": "stop"}
    settings = config.sink_settings()
    assert (settings.background, settings.collations) == (True, (("utf8mb4_0900_ai_ci", "uca1400_ai_ci"),))
    assert config.acceptance.collations == settings.collations


def test_the_environment_sets_keys_and_policies(tmp_path):
    environment = {"APPLIER_DDL__BACKGROUND": "true", "APPLIER_DDL__ADD_INDEX": "skip", "APPLIER_DDL__COLLATIONS": '{"a": "b"}'}
    config = load(tmp_path, SERVER, environment)
    assert (config.ddl.background, config.ddl.policies, config.ddl.collations) == (True, {"add_index": "skip"}, {"a": "b"})


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("[ddl]\nbackgruond = true\n", "unknown DDL type: 'backgruond'", "'background'"),
        ('[ddl.collations]\n"a" = "b; DROP TABLE t"\n', "ddl.collations is invalid", ""),
        ('[ddl]\nbackground = "often"\n', "ddl.background is invalid", ""),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message, remedy):
    with pytest.raises(ConfigError, match="ddl") as raised:
        load(tmp_path, SERVER + text)
    assert message in str(raised.value)
    assert remedy in raised.value.remedy


def test_a_file_builds_nothing_in_the_background(tmp_path):
    with pytest.raises(ConfigError, match="is for servers: a SQLite file has one writer"):
        load(tmp_path, MINIMAL + "[ddl]\nbackground = true\n")
