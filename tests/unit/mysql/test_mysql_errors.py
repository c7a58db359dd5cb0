"""What error codes mean, and what their messages may say."""

import pickle
import ssl
from typing import cast

import pymysql
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from applier.model.errors import FatalSinkError, RetryableSinkError, RowRefused, SinkFull
from applier.mysql.errors import DENIED, MEANINGS, ErrorVerdict, code_of, is_database_error, meaning_of, translate
from applier.planner.port import Phase, Statement
from applier.replica.recovery import is_transient
from applier.sinks.mysql.warnings import NULLS, judge_warnings
from applier.sources.binlog.server import failed
from applier.sources.binlog.settings import BinlogSettings
from applier.upstream.snapshot_session import explained, is_passing


def server(code: int, text: str) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(code, text)


class Warned:
    """A connection whose last statement had one warning."""

    def __init__(self, code: int) -> None:
        self._code = code

    def execute(self, _: object) -> list[tuple[str, int, str]]:
        return [("Warning", self._code, "Column 'b' cannot be null")]


@pytest.mark.parametrize("code", [1205, 1213, 2003, 2006, 2013, 1927, 9007, 8022])
def test_what_a_repetition_may_heal_is_retryable(code: int) -> None:
    error = translate(server(code, "x"), "y")
    assert type(error) is RetryableSinkError
    assert error.remedy


@pytest.mark.parametrize("code", [1045, 1049, 1142, 1146, 1136, 1290, 1792, 1064, 59999])
def test_what_would_fail_again_is_fatal_and_so_is_an_unknown_code(code: int) -> None:
    error = translate(server(code, "x"), "y")
    assert type(error) is FatalSinkError
    assert error.facts["code"] == code
    assert error.remedy


@pytest.mark.parametrize("code", [1048, 1062, 1263, 1264, 1265, 1292, 1366, 1406, 1451, 1452, 1526, 3819, 4025])
def test_what_is_wrong_with_some_rows_only_is_distinguished(code: int) -> None:
    error = translate(server(code, "x"), "y")
    assert type(error) is RowRefused
    assert error.remedy


@pytest.mark.parametrize("code", sorted(NULLS))
def test_a_null_that_a_column_refuses_names_the_producers_that_write_it_for_a_text(code: int) -> None:
    assert "pingcap/ticdc issue 3958" in str(translate(server(code, "x"), "y"))
    statement = Statement(Phase.REPLACE, "s.t", b"", 1, 1, 1)
    with pytest.raises(RowRefused, match="pingcap/ticdc issue 3958") as caught:
        judge_warnings(cast("Connection", Warned(code)), statement, 1)
    assert caught.value.facts["code"] == code


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1021, 'Disk full (/var/tmp/x); waiting for someone to free some space... (errno: 28 "No space left on device")'),
        (1114, "The table 't' is full"),
        (28, "x"),
        (1030, 'Got error 28 "No space left on device" from storage engine InnoDB'),
        (1030, "Got error 28 - 'No space left on device' from storage engine"),
        (3, "Error writing file '/var/lib/mysql/binlog.000001' (errno: 28 - No space left on device)"),
        (1026, "Error writing file '/x' (errno: 28 \"No space left on device\")"),
        (1005, 'Can\'t create table `s`.`t` (errno: 28 "No space left on device")'),
        (1006, "Can't create database 's' (errno: 122)"),
    ],
)
def test_a_full_disk_is_reported_as_such_and_is_transient(code: int, words: str) -> None:
    error = translate(server(code, words), "writing rows")
    assert type(error) is SinkFull
    assert is_transient(error)
    assert "no space left while" in error.message
    assert "Free space" in error.remedy


@pytest.mark.parametrize("words", ["Got error 127 from storage engine", "Got error 2800 from storage engine", 'Got error 5 "I/O error"'])
def test_other_errors_of_the_storage_engine_are_no_full_disk(words: str) -> None:
    assert type(translate(server(1030, words), "y")) is FatalSinkError


@pytest.mark.parametrize("code", [5, 1037, 1038, 1041])
def test_a_lack_of_memory_may_pass_and_says_what_to_do(code: int) -> None:
    error = translate(server(code, "x"), "y")
    assert type(error) is RetryableSinkError
    assert "memory" in error.remedy


def test_no_fatal_error_is_without_a_remedy() -> None:
    assert [code for code, meaning in MEANINGS.items() if meaning.verdict is not ErrorVerdict.RETRY and not meaning.remedy] == []


@pytest.mark.parametrize(
    ("code", "text", "shown"),
    [
        (1062, "Duplicate entry 'se''cret for key 'x'' for key 'uk_mail'", "uk_mail"),
        (1366, "Incorrect integer value: 'secret' for column `s`.`t`.`age` at row 3", "`s`.`t`.`age`"),
        (1406, "Data too long for column 'name' at row 1", "name"),
        (1048, "Column 'name' cannot be null", "name"),
        (1364, "Field 'name' doesn't have a default value", "name"),
        (1526, "Table has no partition for value secret", ""),
        (1064, "You have an error in your SQL syntax near 'secret' at line 1", ""),
        (1292, "Truncated incorrect DOUBLE value: 'secret'", ""),
        (60000, "something about 'secret'", ""),
    ],
)
def test_a_message_names_columns_and_keys_but_never_values(code: int, text: str, shown: str) -> None:
    error = translate(server(code, text), "writing rows", table="s.t")
    assert "secret" not in str(error)
    assert shown in error.message


def test_a_message_of_names_only_is_passed_on() -> None:
    assert "INSERT command denied to user 'u'@'h'" in str(
        translate(server(1142, "INSERT command denied to user 'u'@'h' for table `s`.`t`"), "x")
    )


def test_a_ddl_shows_the_servers_words() -> None:
    assert "near 'FOO'" in str(translate(server(1064, "near 'FOO'"), "running a DDL", shows_text=True))


def test_tidbs_generic_code_is_retryable_only_for_a_stale_schema() -> None:
    assert meaning_of(server(1105, "Information schema is out of date")).verdict is ErrorVerdict.RETRY
    assert meaning_of(server(1105, "whatever")).verdict is ErrorVerdict.FATAL


def test_sqlalchemys_wrapper_is_looked_through_and_its_statement_is_not_shown() -> None:
    wrapped = OperationalError("INSERT 'secret'", {"p": "secret"}, server(1213, "Deadlock found"))
    assert code_of(wrapped) == 1213
    assert "secret" not in str(translate(wrapped, "x"))


@pytest.mark.parametrize("error", [BrokenPipeError(), ConnectionResetError(), TimeoutError(), pymysql.err.InterfaceError(0, "")])
def test_a_broken_connection_is_a_lost_one(error: Exception) -> None:
    assert meaning_of(error).verdict is ErrorVerdict.LOST


@pytest.mark.parametrize("error", [FileNotFoundError(2, "ca.pem"), ssl.SSLCertVerificationError("no")])
def test_wrong_tls_options_are_not_retried(error: Exception) -> None:
    assert type(translate(error, "connecting")) is FatalSinkError


def test_other_exceptions_are_not_of_the_database() -> None:
    assert not is_database_error(ValueError("x"))


def test_errors_survive_the_way_from_an_executor() -> None:
    error = translate(server(1406, "Data too long for column 'name' at row 1"), "writing rows", table="s.t", min_ts=1)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 -- our own bytes


@pytest.mark.parametrize(
    ("cause", "code", "kind"),
    [
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), 2026, FatalSinkError),
        (ssl.SSLError(1, "unsupported protocol"), 2026, FatalSinkError),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), 2003, RetryableSinkError),
        (ConnectionResetError(104, "Connection reset by peer"), 2003, RetryableSinkError),
        (FileNotFoundError(2, "No such file or directory"), 2003, RetryableSinkError),
    ],
)
def test_a_handshake_that_fails_is_distinguished_from_a_server_that_is_away(cause, code, kind):
    error = pymysql.err.OperationalError(2003, "Can't connect")
    error.original_exception = cause
    ours = translate(error, "connecting")
    assert type(ours) is kind
    assert ours.facts == {"code": code}
    assert ("tls_ca" in ours.remedy) == (code == 2026)


@pytest.mark.parametrize("error", [FileNotFoundError(2, "no ca.pem"), PermissionError(13, "key"), ssl.SSLError(9, "PEM lib")])
def test_a_file_for_tls_that_cannot_be_used_is_fatal(error):
    assert type(translate(error, "connecting")) is FatalSinkError


PASSING = {ErrorVerdict.RETRY, ErrorVerdict.LOST, ErrorVerdict.FULL}
PRIMARY = BinlogSettings(url="mysql+pymysql://applier@primary:3306/", server_ids=(1, 2), name="replica")


@pytest.mark.parametrize("code", MEANINGS)
def test_a_code_is_as_transient_for_a_binlog_and_for_upstream_as_it_is_for_the_sink(code: int) -> None:
    error = server(code, "x")
    passes = MEANINGS[code].verdict in PASSING
    assert isinstance(translate(error, "y"), RetryableSinkError | SinkFull) is passes
    assert (failed(PRIMARY, "y", error).facts["kind"] == "unreachable") is passes
    assert is_passing(explained(error, "y")) is passes


@pytest.mark.parametrize("code", [1203, 1047, 3032])
def test_a_server_that_is_full_or_in_maintenance_is_waited_for_by_sink_and_source(code: int) -> None:
    assert MEANINGS[code].verdict is ErrorVerdict.RETRY
    assert failed(PRIMARY, "y", server(code, "x")).facts["kind"] == "unreachable"


@pytest.mark.parametrize("code", sorted(DENIED))
def test_a_refused_user_is_told_so_by_sink_and_source(code: int) -> None:
    assert failed(PRIMARY, "y", server(code, "x")).message == "the server of the binlog refuses the user: y"
    assert explained(server(code, "x"), "y").message == "upstream refuses access"
