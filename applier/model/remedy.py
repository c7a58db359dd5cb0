"""Remedies: what an operator does about an error or a finding. Each has an identifier, and its wording is free.

A remedy's commands name the position of their error, so that an operator can run them as they stand. A remedy writes ``…`` for the value of
an option. What the facts of the error know is filled in when the remedy is read; the rest stays.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final, Self

INSPECT_RECORD: Final = "applier inspect --topic … --partition … --from … --limit 1"
SKIP_RECORD: Final = "applier skip --stream … --offset …"

_OPEN: Final = re.compile(r"--([a-z-]+) …")
_FACT_OF: Final = {
    "ts": "commit_ts",
    "until-ts": "commit_ts",
    "table": "table",
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "from": "offset",
    "gtid": "gtid",
    "position": "position",
}
_OF_LOG: Final = {"--topic … --partition … --from …": "--from …", "--stream … --offset …": "--position …"}
"""What names a record of a topic, and what names the same of a binlog."""


class Remedy(str):
    """The text of a remedy, and its identifier: ``id`` is stable, in kebab case, and begins with its area (``kafka.grant-read``).

    A remedy is made once in the code, with a literal identifier: ``tests/remedies/register.toml`` says which test follows it.
    """

    __slots__ = ("id",)

    id: str

    def __new__(cls, identifier: str, text: str) -> Self:
        """Make a remedy; both arguments are literals, but for what the text fills in."""
        made = super().__new__(cls, text)
        made.id = identifier
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override] # a str has one argument
        """Pickle both: errors cross from executors to the driver."""
        return self.id, str(self)

    def filled_in(self, facts: Mapping[str, Any]) -> "Remedy":
        """Return this remedy with the options of its commands filled in from the facts of its error."""
        if "…" not in self:
            return self
        text = str(self)
        if "position" in facts:  # of a binlog
            for words, of_log in _OF_LOG.items():
                text = text.replace(words, of_log)
        return Remedy(self.id, _OPEN.sub(lambda found: _option(found[0], found[1], facts), text))

    def then(self, other: "Remedy") -> "Remedy":
        """Return this remedy and a second one, with both identifiers: ``a+b``."""
        return Remedy(f"{self.id}+{other.id}", f"{self}{'' if self.endswith(('.', '?')) else '.'} {other}") if self else other


NO_REMEDY: Final = Remedy("", "")
"""Of an error that no one can mend, or whose message says what to do."""


def _option(whole: str, option: str, facts: Mapping[str, Any]) -> str:
    value = _value(option, facts)
    return whole if value is None else f"--{option} {shlex.quote(str(value))}"


def _value(option: str, facts: Mapping[str, Any]) -> Any:
    if option == "stream":
        return f"{facts['topic']}/{facts['partition']}" if facts.keys() >= {"topic", "partition"} else facts.get("stream")
    if option == "from" and "position" in facts:
        return facts["position"]
    if option == "ts" and "commit_position" in facts:
        return str(facts["commit_position"]).partition(" ")[0]  # its time stands after it
    value = facts.get(_FACT_OF.get(option, ""))
    # A schema is named with a dot after it, and what has no name by a dot alone: half a name of a table would match nothing.
    return f"{value}." if option == "table" and value is not None and "." not in str(value) else value
