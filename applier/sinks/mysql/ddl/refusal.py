"""The errors that stop a DDL which the server refused: what failed, why, and what the operator does."""

import re
from typing import Final

from sqlalchemy import Connection

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.remedy import NO_SEQUENCE, OTHER_ROWS
from applier.model.errors import FatalSinkError, RetryableSinkError, SinkError
from applier.model.remedy import Remedy
from applier.mysql.errors import code_of, is_known, translate
from applier.sinks.mysql.ddl.intents import Intent
from applier.sinks.mysql.ddl.sessions import blockers

LOCK_WAIT_TIMEOUT, NO_TABLE, DUPLICATE_ENTRY, SYNTAX_ERROR = 1205, 1146, 1062, 1064
_NEAR: Final = re.compile(r"near '(.*)' at line", re.DOTALL)
_MAX_SHOWN: Final = 80
_OTHER_TABLE: Final = Remedy(
    "mysql.define-table-as-upstream",
    "Give the table in the sink upstream's definition and rows, then run `applier ddl done --ts … --table …`. "
    "Or rename it, so that it keeps its rows, and start the applier again: it makes the table",
)
_OTHER_INDEX: Final = Remedy(
    "mysql.define-index-as-upstream",
    "Give the index in the sink upstream's definition, then run `applier ddl done --ts … --table …`. "
    "Or drop the index, which holds no rows, and start the applier again",
)
_OTHER_VIEW: Final = Remedy(
    "mysql.define-view-as-upstream",
    "Give the view in the sink upstream's definition, then run `applier ddl done --ts … --table …`. "
    "Or drop the view, which holds no rows, and start the applier again",
)
_OTHER_COLUMNS: Final = Remedy(
    "mysql.complete-table",
    "Give the table in the sink what it has upstream behind this DDL, and old rows the values that they have there: `applier verify` shows "
    "those that differ. Then run `applier ddl done --ts … --table …`",
)
_FOUND: Final = Remedy(
    "mysql.define-column-as-upstream",
    "Give the column in the sink upstream's definition, and its rows upstream's values. Then run `applier ddl done --ts … --table …`",
)
_LOCKED: Final = Remedy(
    "mysql.end-blocking-session",
    "Another session holds a lock that the DDL needs: blocked_by names it. End that session, then start the applier again",
)
_BY_HAND: Final = Remedy(
    "mysql.change-by-hand-then-done",
    "Change the sink by hand, its rows included, then run `applier ddl done --ts … --table …`."
    " Run `applier ddl skip --ts … --table …` only if the sink does not need the statement",
)


def refused(connection: Connection, intent: Intent, error: BaseException, *, reason: str = "") -> SinkError:
    """Return the server's refusal as an error of ours. ``reason``: why an "already so" does not count as done."""
    facts = intent.facts | ({"reason": reason} if reason else {})
    if code_of(error) == LOCK_WAIT_TIMEOUT:
        facts["blocked_by"] = blockers(connection, intent.ddl.schema) or "unknown (GRANT PROCESS shows it)"
    # The text of a DDL is in the message already, so the server's words about it give away nothing more.
    ours = translate(error, "running a DDL", shows_text=True, **facts)
    if code_of(error) == SYNTAX_ERROR:
        return FatalSinkError(_unknown_words(ours.message), remedy=_BY_HAND, **ours.facts)
    # 1146 has its own remedy: create the table.
    if code_of(error) == DUPLICATE_ENTRY:
        return FatalSinkError(ours.message, remedy=OTHER_ROWS, **ours.facts)
    if code_of(error) == NO_TABLE and intent.ddl.is_of_log and _changes_table(intent):
        return FatalSinkError(ours.message, remedy=NO_SEQUENCE, **ours.facts)
    if isinstance(ours, RetryableSinkError):
        remedy = _LOCKED if code_of(error) == LOCK_WAIT_TIMEOUT else ours.remedy
        return RetryableSinkError(ours.message, remedy=remedy, **ours.facts)
    remedy = _remedy_of_result(intent) if reason and code_of(error) != NO_TABLE else ours.remedy if is_known(error) else _BY_HAND
    return type(ours)(ours.message, remedy=remedy, **ours.facts)


def _changes_table(intent: Intent) -> bool:
    statement = parse_ddl(intent.ddl)
    return statement is not None and statement.kind in {DdlKind.RENAME_TABLE, DdlKind.ALTER_TABLE}


def _unknown_words(message: str) -> str:
    """Say what the server does not know: it begins its answer with advice to read a manual."""
    near = _NEAR.search(message)
    return "the sink's server does not know words of the DDL" + (f": {near[1][:_MAX_SHOWN]}" if near is not None else "")


def found_otherwise(intent: Intent, reason: str) -> FatalSinkError:
    """Return the error of a DDL that has made a part, and has found another part (IF NOT EXISTS) that is not what it makes."""
    message = f"the DDL has found a column that is not what it makes: {reason}"
    return FatalSinkError(message, remedy=_FOUND, **intent.facts)


def result_differs(intent: Intent, reason: str) -> FatalSinkError:
    """Return the error of a DDL that changed nothing (IF NOT EXISTS), and whose object is not what it makes."""
    message = f"the DDL changed nothing, because its object exists already: {reason}"
    return FatalSinkError(message, remedy=_remedy_of_result(intent), **intent.facts)


def _remedy_of_result(intent: Intent) -> Remedy:
    """Return what to do about an object that is not what the statement makes: what holds rows is never dropped."""
    statement = parse_ddl(intent.ddl)
    match None if statement is None else statement.kind:
        case DdlKind.CREATE_TABLE | DdlKind.CREATE_TABLE_LIKE:
            return _OTHER_TABLE
        case DdlKind.CREATE_INDEX | DdlKind.DROP_INDEX:
            return _OTHER_INDEX
        case DdlKind.CREATE_VIEW | DdlKind.DROP_VIEW:
            return _OTHER_VIEW
        case _:
            return _OTHER_COLUMNS
