"""New columns and tables of the simulated upstream, with names that are used once."""

import random
from dataclasses import dataclass

from applier.demo.simulator import column_type as of
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.generated_column import GeneratedRule, Generation
from applier.demo.simulator.random_value import random_value
from applier.demo.simulator.schema import (
    Table,
    UpstreamColumn,
    UpstreamIndex,
    column,
    column_with_default,
    generated,
    index,
    primary,
    unique,
)
from applier.model.events import TableName

EXTRA_PREFIX = "extra_"
PARENT = "parent"
"""A column that may refer to the key of its own table."""
_PARENT_SHARE = 0.5
_GENERATED_SHARE = 0.4
_GENERATED_KEY_SHARE = 0.1
_GENERATED_TYPES = {
    GeneratedRule.SESSION_DAY: (of.timestamp(), of.date()),
    GeneratedRule.FLOAT_TEXT: (of.real("FLOAT"), of.varchar(40)),
    GeneratedRule.LETTER: (of.integer("INT", unsigned=True), of.integer("INT")),
    GeneratedRule.SUCCESSOR: (of.integer("INT"), of.integer("BIGINT")),
}
_DISTINCT_RULES = (GeneratedRule.SESSION_DAY, GeneratedRule.FLOAT_TEXT)
"""Rules of STORED columns whose values differ often enough for a unique index."""
_EXTRA_TYPES: tuple[UpstreamType, ...] = (
    of.integer("INT"),
    of.integer("BIGINT", unsigned=True),
    of.varchar(30),
    of.decimal(12, 3),
    of.datetime(),
    of.timestamp(),
    of.enum("x", "y", "z"),
    of.set_of("p", "q", "r"),
    of.real("DOUBLE"),
    of.varbinary(20),
    of.char(8),
    of.date(),
    of.bit(9),
)
TYPES_WITHOUT_DEFAULT = frozenset({TypeClass.TEXT, TypeClass.BLOB, TypeClass.JSON})


@dataclass(slots=True)
class TableFactory:
    """Draws columns and tables. ``serial`` numbers everything that is named, so that no name comes back."""

    rng: random.Random
    _serial: int = 0

    def serial(self) -> int:
        """Return the next number."""
        self._serial += 1
        return self._serial

    def new_table(self, name: TableName) -> Table:
        """Define a table with some columns of any kind, a key of one or two columns, and perhaps a unique index."""
        keys = [column("id", self.rng.choice((of.integer("BIGINT"), of.integer("INT", unsigned=True), of.varchar(40))), null=False)]
        if self.rng.random() < 0.3:
            keys.append(column("part", of.integer("SMALLINT"), null=False))
        others = [self.extra_column() for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < _GENERATED_KEY_SHARE:
            others.append(column("at", of.timestamp(), null=False))
            keys.insert(0, generated("day", of.date(), Generation(rule=GeneratedRule.SESSION_DAY, source="at"), null=False))
        columns = [*keys, *others]
        if self.rng.random() < 0.3:
            self.rng.shuffle(columns)
        indexes: list[UpstreamIndex] = [primary(*(key.name for key in keys))]
        if self.rng.random() < 0.4:
            columns.append(column("tag", of.integer("INT")))
            # TiDB names an index after its first column if the statement does not.
            indexes.append(
                self.rng.choice((unique("one_tag", "tag"), UpstreamIndex(name="tag", columns=("tag",), unique=True, named=False)))
            )
        if len(keys) == 1 and self.rng.random() < _PARENT_SHARE:
            columns.append(column(PARENT, keys[0].type))
            indexes.append(index("by_parent", PARENT))
        if self.rng.random() < _GENERATED_SHARE:
            made, made_indexes = self._generated()
            columns += made
            indexes += made_indexes
        return Table(name=name, columns=tuple(columns), indexes=tuple(indexes))

    def _generated(self) -> tuple[list[UpstreamColumn], list[UpstreamIndex]]:
        """Return a generated column with its source, and perhaps a unique index over it. Later DDLs leave both as they are."""
        rule = self.rng.choice(list(GeneratedRule))
        source, kind = _GENERATED_TYPES[rule]
        columns = [
            column("source", source),
            generated("made", kind, Generation(rule=rule, source="source", stored=rule is not GeneratedRule.SUCCESSOR)),
        ]
        is_unique = rule in _DISTINCT_RULES and self.rng.random() < 0.6
        return columns, [unique("one_made", "made")] if is_unique else []

    def extra_column(self) -> UpstreamColumn:
        """Return a column of any kind that later DDLs may change or drop."""
        name, kind = f"{EXTRA_PREFIX}{self.serial()}", self.rng.choice(_EXTRA_TYPES)
        nullable = self.rng.random() < 0.6
        if self.rng.random() < 0.5 and kind.kind not in TYPES_WITHOUT_DEFAULT:
            value = random_value(self.rng, column(name, kind, null=False))
            if not (isinstance(value, str) and not value.isprintable()):
                return column_with_default(name, kind, value, null=nullable)
        return column(name, kind, null=nullable)
