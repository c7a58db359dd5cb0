"""A file of a dump is cut into statements, and each one is known for what it is."""

import io

import pytest

from applier.dump.statements import PieceKind, piece_of, pieces, statements
from applier.model.errors import ConfigError


def cut(text):
    return [statement.decode() for statement in statements(io.BytesIO(text.encode()))]


def test_a_statement_ends_at_the_end_of_a_line_outside_of_quotes_and_comments():
    text = "-- a;\n# b;\n\n/* c */\nINSERT INTO t VALUES ('x;\n''y\\';\n',\"q;\n\",`z;\n`) /* ;\n it's */;\nSET a;\n"
    assert cut(text) == ["INSERT INTO t VALUES ('x;\n''y\\';\n',\"q;\n\",`z;\n`) /* ;\n it's */", "SET a"]


def test_what_runs_in_comments_is_a_statement_of_several_lines():
    view = "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`a`@`%` SQL SECURITY DEFINER */\n/*!50001 VIEW `v` AS select 1 */"
    sandbox = "/*M!999999\\- enable the sandbox mode */ \n"
    assert cut(f"{sandbox}{view};\n") == [view]
    assert (piece_of(view.encode()).kind, piece_of(view.encode()).name) == (PieceKind.VIEW, "v")


def test_another_delimiter_holds_a_body_together():
    assert cut("DELIMITER ;;\nCREATE TRIGGER t BEGIN\n a;\n b;\nEND ;;\nDELIMITER ;\nSET a;\n") == [
        "CREATE TRIGGER t BEGIN\n a;\n b;\nEND ",
        "SET a",
    ]


@pytest.mark.parametrize("text", ["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES ('1);\n", "CREATE TABLE t (\n"])
def test_a_file_that_ends_inside_of_a_statement_is_cut(text):
    with pytest.raises(ConfigError, match="ends inside of a statement"):
        cut(text)


@pytest.mark.parametrize(
    ("text", "kind", "schema", "name"),
    [
        ("INSERT INTO `a``b` VALUES (1)", PieceKind.ROWS, "", "a`b"),
        ("INSERT IGNORE INTO s.t (a) VALUES (1)", PieceKind.ROWS, "s", "t"),
        ("REPLACE INTO `s` . `t` VALUES (1)", PieceKind.ROWS, "s", "t"),
        ("CREATE DATABASE /*!32312 IF NOT EXISTS*/ `s` /*!40100 DEFAULT CHARACTER SET utf8mb4 */", PieceKind.SCHEMA, "s", ""),
        ("CREATE TABLE IF NOT EXISTS `t` (\n a INT)", PieceKind.TABLE, "", "t"),
        ("CREATE TABLE `q` (a INT) ENGINE=InnoDB SEQUENCE=1", PieceKind.LEFT_OUT, "", "sequence q"),
        ("CREATE DEFINER=`a`@`b` VIEW v AS SELECT 1", PieceKind.VIEW, "", "v"),
        ("CREATE SEQUENCE `q` start with 1", PieceKind.LEFT_OUT, "", "sequence q"),
        ("/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER x BEFORE INSERT ON t", PieceKind.LEFT_OUT, "", "trigger x"),
        ("CREATE DEFINER=`a`@`b` PROCEDURE `p`()", PieceKind.LEFT_OUT, "", "procedure p"),
        ("/*!50001 CREATE TABLE `v` (\n `id` tinyint NOT NULL\n) ENGINE=MyISAM */", PieceKind.NOTHING, "", ""),
        ("USE `s`", PieceKind.USE, "s", ""),
        ("/*!40101 SET NAMES binary*/", PieceKind.CHARSET, "", "binary"),
        ("/*!40103 SET TIME_ZONE='+00:00' */", PieceKind.ZONE, "", "+00:00"),
        ("/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */", PieceKind.NOTHING, "", ""),
        ("/*!40000 ALTER TABLE `t` DISABLE KEYS */", PieceKind.NOTHING, "", ""),
        ("DROP TABLE IF EXISTS `t`", PieceKind.NOTHING, "", ""),
        ("DO SETVAL(`q`, 1, 0)", PieceKind.NOTHING, "", ""),
    ],
)
def test_each_statement_of_a_dump_is_known(text, kind, schema, name):
    piece = piece_of(text.encode())
    assert (piece.kind, piece.schema, piece.name) == (kind, schema, name)


@pytest.mark.parametrize(
    "text", ["DELETE FROM t", "SET GLOBAL gtid_slave_pos = '0-1-2'", "ALTER TABLE t ADD KEY k (a)", "CHANGE MASTER TO a"]
)
def test_another_statement_is_refused_and_not_passed_over(text):
    with pytest.raises(ConfigError, match="does not know"):
        list(pieces(io.BytesIO(f"{text};\n".encode())))
