"""What a sink's server has of what TiDB's DDL may use. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

MARIADB_COLLATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
        "utf8mb4_0900_as_ci": "utf8mb4_uca1400_nopad_as_ci",
        "utf8mb4_0900_as_cs": "utf8mb4_uca1400_nopad_as_cs",
        "utf8mb4_0900_bin": "utf8mb4_nopad_bin",
    }
)
"""Collations of MySQL 8 and what MariaDB from 10.10 on has instead: the same rules of case, accents and trailing spaces (NO PAD).

Not the same for every text. MySQL's are of Unicode 9, which knows nothing of later characters and keeps them apart. MariaDB's are of
Unicode 14, under which such a character may equal an older one (U+1FBF0 is a digit 0). So they do not explain a unique key in the table
check. Those of single languages (``utf8mb4_de_pb_0900_ai_ci``) have no counterpart.
"""


class Target(NamedTuple):
    """What the server of a sink understands. The default is a TiDB, or a server that is not known: the statement stays as it is.

    ``collations``: what the sink calls upstream's collations, names in lower case.
    """

    has_vectors: bool = True
    has_vector_indexes: bool = True
    has_expression_indexes: bool = True
    has_intervals: bool = True
    has_or_replace: bool = True
    """CREATE OR REPLACE TABLE."""
    has_generated_keys: bool = True
    """Generated columns that are NOT NULL, or in a primary key."""
    has_unenforced_checks: bool = True
    """CHECK … NOT ENFORCED."""
    has_column_visibility: bool = True
    """VISIBLE of a column, and its change alone: ALTER COLUMN … SET VISIBLE."""
    has_srid: bool = True
    """SRID of a column, which limits its values to one."""
    has_periods: bool = True
    """MariaDB's PERIOD FOR."""
    keeps_foreign_keys_apart: bool = True
    """Two tables of a schema may have foreign keys of one name."""
    collations: Mapping[str, str] = MappingProxyType({})


UPSTREAM: Final = Target()
