"""Which unique indexes of expressions the table check names: the texts are MySQL 9.7's."""

import pytest

from applier.mysql.catalogue import unportable_unique_indexes
from applier.mysql.structure import ColumnStructure, IndexPartStructure, IndexStructure, TableStructure, expression_of

COLUMNS = (
    ColumnStructure(name="id", type="int", nullable=False),
    ColumnStructure(name="code", type="varchar(9)", character_set="utf8mb4", collation="utf8mb4_bin", nullable=False),
    ColumnStructure(name="f", type="float", nullable=True),
)


def column(name: str, prefix: int | None = None) -> IndexPartStructure:
    return IndexPartStructure(column=name, prefix=prefix)


def found(*parts: IndexPartStructure | str, primary: tuple[str, ...] = ("id",), unique: bool = True) -> list[str]:
    """Examine a table with one index; a text is an expression."""
    made = [
        part if isinstance(part, IndexPartStructure) else IndexPartStructure(column=None, expression=expression_of(part)) for part in parts
    ]
    indexes = [IndexStructure(name="low", unique=unique, parts=tuple(made))]
    if primary:
        indexes.insert(0, IndexStructure(name="PRIMARY", unique=True, parts=tuple(map(column, primary))))
    return unportable_unique_indexes(TableStructure(kind="BASE TABLE", columns=COLUMNS, indexes=tuple(indexes)))


@pytest.mark.parametrize("expression", ["lower(`code`)", "(`f` + 1)", r"concat(`code`,_utf8mb4\'x\')", "(`id` % 2)", "cast(`f` as date)"])
def test_an_expression_that_servers_may_compute_otherwise_is_named(expression: str) -> None:
    assert found(expression) == found(column("code"), expression) == found(expression, primary=()) == ["low"]


@pytest.mark.parametrize("expression", ["(`id` + 1)", "coalesce(`id`,0)", "if((`id` <=> 5),0,-(`id`))", "((0 <> `id`) and (0 <> 1))"])
def test_a_number_that_they_compute_alike_is_not(expression: str) -> None:
    assert found(expression) == []


def test_an_index_that_cannot_refuse_more_than_the_primary_key_is_not() -> None:
    assert found(column("id"), "lower(`code`)") == found(column("code"), "(`f` + 1)", primary=("code",)) == []
    assert found(column("code", 3), "(`f` + 1)", primary=("code",)) == ["low"]


def test_an_index_that_is_not_unique_or_has_no_expression_is_not() -> None:
    assert found("lower(`code`)", unique=False) == found(column("code"), primary=()) == []
