"""A history without an end that needs bounded memory: it drops its schemas now and then, and another one begins."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Final

from applier.demo.simulator.history import History
from applier.demo.simulator.operation import CreateSchema, CreateView, Ddl, DropSchema, DropView, UpstreamStep
from applier.model.events import TableName
from applier.model.position import NO_TS

ENDLESS: Final = 10**12
STEPS_EACH: Final = 20_000
"""Two hours at the usual pace. Some tables of a history only grow, and the definitions that DDLs leave in caches grow too."""


def endless_steps(history: History, steps_each: int = STEPS_EACH) -> Iterator[UpstreamStep]:
    """Yield the steps of ``history``, then ``steps_each`` steps of each later seed. Between two, DDLs drop everything.

    Only the steps of the first history have a ts that means something.
    """
    for seed in count(history.seed):
        standing = _Standing()
        for step in islice(History(seed, replace(history.options, transactions=ENDLESS)), steps_each):
            standing.note(step)
            yield step
        for ddl in standing.drops():
            yield UpstreamStep(NO_TS, (), (ddl,))


@dataclass(slots=True)
class _Standing:
    """The schemas and views that are there: a database drops the tables of a schema itself."""

    schemas: set[str] = field(default_factory=set)
    views: set[TableName] = field(default_factory=set)

    def note(self, step: UpstreamStep) -> None:
        for ddl in step.ddls:
            match ddl:
                case CreateSchema(schema):
                    self.schemas.add(schema)
                case DropSchema(schema):
                    self.schemas.discard(schema)
                    self.views = {view for view in self.views if view.schema != schema}
                case CreateView(name, _, _):
                    self.views.add(name)
                case DropView(name):
                    self.views.discard(name)
                case _:
                    pass

    def drops(self) -> list[Ddl]:
        return [*map(DropView, sorted(self.views)), *map(DropSchema, sorted(self.schemas))]
