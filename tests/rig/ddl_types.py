"""Every DDL type that TiCDC replicates, with the statements as TiDB prints them, and what each sink has afterwards. Data only.

``docs/ddl_types.md`` is made of it. On MariaDB, MySQL and SQLite: tests/integration/test_every_ddl_type.py and
tests/histories/test_every_ddl_type_on_sqlite.py.
"""

from dataclasses import dataclass, field, replace
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A table as a catalogue shows it. SQLite shows neither collations, nor partitions, nor comments, and hides no index.

    ``columns``: name, type, ``!`` for NOT NULL, ``=default``, ``{collation}`` unless it is utf8mb4_bin. ``keys``: ``u:`` before a unique
    one, ``~`` behind one that is hidden from the optimizer.
    """

    columns: str = "id int!, v int, w varchar(20)!='x'"
    keys: str = "PRIMARY(id)"
    partitions: str = ""
    rows: int = 2
    comment: str = ""

    def in_sqlite(self) -> "Shown":
        """Return what a file has of it."""
        columns = ", ".join(column.partition("{")[0].removesuffix("+") for column in self.columns.split(", "))
        return replace(self, columns=columns, keys=self.keys.replace("~", ""), partitions="", comment="")


@dataclass(frozen=True, slots=True)
class Stops:
    """The DDL stops the replica; the error holds these words. ``why`` stands in the document."""

    words: str
    why: str


GONE: Final = None
VIEW: Final = "view"
Expected = dict[str, Shown | str | None]
Result = Expected | Stops


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCase:
    """``after``: what stands under each name afterwards, for all sinks that have nothing of their own. ``note``: what the document says."""

    number: int
    what: str
    ddl: str
    table: str = "t"
    before: tuple[str, ...] = ()
    after: Expected = field(default_factory=dict)
    mariadb: Result | None = None
    mysql: Result | None = None
    sqlite: Result | None = None
    note: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    """What the document says of one sink."""

    def __str__(self) -> str:
        return f"{self.number} {self.what}".replace(" ", "_")

    def expected(self, sink: str) -> Result:
        """Return what a sink has afterwards."""
        own: Result | None = getattr(self, sink)
        if own is not None or sink != "sqlite":
            return self.after if own is None else own
        return {name: shown.in_sqlite() if isinstance(shown, Shown) else shown for name, shown in self.after.items()}


_T: Final = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`w` VARCHAR(20) NOT NULL DEFAULT _UTF8MB4'x')"
_O: Final = "CREATE TABLE `o` (`id` INT PRIMARY KEY,`v` INT,`w` VARCHAR(20) NOT NULL DEFAULT _UTF8MB4'x')"
_RANGES: Final = " PARTITION BY RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (10),PARTITION `p1` VALUES LESS THAN (20))"
_P: Final = _T + _RANGES
_BY_V: Final = "CREATE INDEX `by_v` ON `t` (`v`)"
_NO_PARTITIONS: Final = "SQLite has no partitions"
_LOW: Final = "ALTER TABLE `t` ADD INDEX `low`((LOWER(`w`)))"
_GLOBAL: Final = Stops("must include all columns", "the server wants the partitioning columns in each unique index")
_NO_ROWS_BACK: Final = Stops("are not in the stream", "the rows that it brings back are not in the stream")
_BOUND: Final = Stops("INTERVAL", "the bound does not name the partitions; TiDB itself sends their names")
_NO_ROWS: Final = Stops("are not in the stream", "the rows of the table are not in the stream")
_DELETES: Final = Stops(_NO_PARTITIONS, "a partition's rows are deleted or exchanged, and no row events follow")


def _t(columns: str = Shown().columns, keys: str = "PRIMARY(id)", **more: object) -> Expected:
    return {"t": Shown(columns=columns, keys=keys, **more)}  # type: ignore[arg-type]


def _alter(number: int, what: str, clause: str, *before: str, **more: object) -> TypeCase:
    return TypeCase(number=number, what=what, ddl=f"ALTER TABLE `t` {clause}", before=before or (_T,), **more)  # type: ignore[arg-type]


_BASE: Final = Shown().columns

CASES: Final = (
    # Schemas
    TypeCase(number=1, what="CREATE DATABASE", ddl="CREATE DATABASE `lab_1` CHARACTER SET = utf8mb4", table=""),
    TypeCase(
        number=2,
        what="DROP DATABASE",
        ddl="DROP DATABASE IF EXISTS `lab_1`",
        table="",
        before=("CREATE DATABASE `lab_1`", "CREATE TABLE `lab_1`.`x` (`id` INT PRIMARY KEY)"),
        after={"lab_1.x": GONE},
    ),
    TypeCase(
        number=26,
        what="ALTER DATABASE … CHARACTER SET",
        ddl="ALTER DATABASE `lab_1` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_general_ci",
        table="",
        before=("CREATE DATABASE `lab_1`",),
    ),
    # Tables
    TypeCase(
        number=3,
        what="CREATE TABLE",
        ddl=_T + " ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN",
        after=_t(rows=0),
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE with TiDB's special comments",
        ddl="CREATE TABLE `t` (`id` BIGINT /*T![auto_rand] AUTO_RANDOM(5) */ NOT NULL,`at` DATETIME NOT NULL,"
        "PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */) /*T! SHARD_ROW_ID_BITS = 4 */ /*T! PRE_SPLIT_REGIONS = 2 */ "
        "/*T![auto_id_cache] AUTO_ID_CACHE = 1 */ /*T![ttl] TTL = `at` + INTERVAL 1 DAY */ /*T![ttl] TTL_ENABLE = 'OFF' */ "
        "/*T![placement] PLACEMENT POLICY = `p` */",
        after=_t("id bigint!, at datetime!", rows=0),
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE … LIKE",
        ddl="CREATE TABLE `n` LIKE `t`",
        table="n",
        before=(_T, _BY_V),
        after={"n": Shown(keys="PRIMARY(id), by_v(v)", rows=0), **_t(keys="PRIMARY(id), by_v(v)")},
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE partitioned by RANGE COLUMNS",
        ddl=_T + " PARTITION BY RANGE COLUMNS (`id`) (PARTITION `p0` VALUES LESS THAN (10),PARTITION `p1` VALUES LESS THAN (MAXVALUE))",
        after=_t(partitions="p0:0 p1:0", rows=0),
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE partitioned by an INTERVAL, as TiDB rewrites it",
        ddl=_T
        + " PARTITION BY RANGE COLUMNS (`id`) (PARTITION `P_LT_10` VALUES LESS THAN (10),\n PARTITION `P_LT_20` VALUES LESS THAN (20))",
        after=_t(partitions="P_LT_10:0 P_LT_20:0", rows=0),
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE with a VECTOR column and its index",
        ddl="CREATE TABLE `t` (`id` INT PRIMARY KEY,`e` VECTOR(3) DEFAULT NULL,`f` VECTOR,"
        "VECTOR INDEX `by_e`((VEC_COSINE_DISTANCE(`e`))) USING HNSW)",
        after=_t("id int!, e longtext, f longtext", rows=0),
        mysql=_t("id int!, e vector(3), f vector(16383)", rows=0),
        sqlite=_t("id int!, e vector(3), f vector", "PRIMARY(id), by_e(e)", rows=0),
        note="VECTOR is text where the sink has no such type; the vector index is skipped, in SQLite a plain one",
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE with a collation of MySQL 8",
        ddl="CREATE TABLE `t` (`id` INT PRIMARY KEY,`a` VARCHAR(9) COLLATE utf8mb4_0900_bin) CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
        after=_t("id int!, a varchar(9){utf8mb4_0900_bin}", rows=0),
        mariadb=_t("id int!, a varchar(9){utf8mb4_nopad_bin}", rows=0),
        notes=(("mariadb", "the collation is mapped (`[ddl.collations]`)"),),
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE with a non-unique index of an expression",
        ddl="CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` VARCHAR(9),KEY `low`((LOWER(`v`))),KEY `by_v`(`v`))",
        after=_t("id int!, v varchar(9)", "PRIMARY(id), by_v(v)", rows=0),
        mysql=_t("id int!, v varchar(9)", "PRIMARY(id), by_v(v), low(lower(`v`))", rows=0),
        sqlite=_t("id int!, v varchar(9)", "PRIMARY(id), by_v(v), low(LOWER(`v`))", rows=0),
        notes=(("mariadb", "the index is skipped"), ("sqlite", "an empty index replaces it where SQLite computes another value")),
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE with a unique index of an expression",
        ddl="CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` VARCHAR(9),UNIQUE KEY `low`((LOWER(`v`))))",
        mysql=_t("id int!, v varchar(9)", "PRIMARY(id), low(lower(`v`))", rows=0),
        mariadb=Stops("unique index of an expression", "MariaDB has no indexes of expressions, and a unique one must not be skipped"),
        sqlite=Stops("cannot compute this expression", "SQLite computes another value, and a unique index must not be skipped"),
        notes=(("mysql", "the index is not unique, because the server may compute another value"),),
    ),
    TypeCase(number=4, what="DROP TABLE", ddl="DROP TABLE `lab`.`t`", before=(_T,), after={"t": GONE}),
    TypeCase(number=11, what="TRUNCATE TABLE", ddl="TRUNCATE TABLE `t`", before=(_T,), after=_t(rows=0)),
    TypeCase(
        number=14, what="RENAME TABLE", ddl="RENAME TABLE `lab`.`t` TO `lab`.`r`", table="r", before=(_T,), after={"t": GONE, "r": Shown()}
    ),
    TypeCase(
        number=14,
        what="ALTER TABLE … RENAME",
        ddl="ALTER TABLE `t` RENAME AS `r`",
        table="r",
        before=(_T,),
        after={"t": GONE, "r": Shown()},
    ),
    TypeCase(
        number=47,
        what="RENAME TABLE of several tables",
        ddl="RENAME TABLE `lab`.`t` TO `lab`.`x`, `lab`.`o` TO `lab`.`t`, `lab`.`x` TO `lab`.`o`",
        before=(_T, _O),
        after={"t": Shown(rows=0), "o": Shown()},
    ),
    TypeCase(number=60, what="CREATE TABLE, one of a batch", ddl=_T, after=_t(rows=0)),
    _alter(13, "AUTO_INCREMENT = …", "AUTO_INCREMENT = 500", _T, after=_t()),
    _alter(13, "FORCE AUTO_INCREMENT = …", "/*T![force_inc] FORCE */ AUTO_INCREMENT = 500", _T, after=_t()),
    _alter(17, "COMMENT = …", "COMMENT = 'it''s new'", after=_t(comment="it's new")),
    _alter(
        22,
        "CONVERT TO CHARACTER SET",
        "CONVERT TO CHARACTER SET UTF8MB4 COLLATE UTF8MB4_GENERAL_CI",
        after=_t("id int!, v int, w varchar(20)!='x'{utf8mb4_general_ci}"),
    ),
    _alter(22, "DEFAULT CHARACTER SET", "DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_GENERAL_CI", after=_t()),
    _alter(
        22,
        "CONVERT TO a collation of MySQL 8",
        "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
        after=_t("id int!, v int, w varchar(20)!='x'{utf8mb4_0900_ai_ci}"),
        mariadb=_t("id int!, v int, w varchar(20)!='x'{utf8mb4_uca1400_nopad_ai_ci}"),
        notes=(("mariadb", "the collation is mapped (`[ddl.collations]`)"),),
    ),
    TypeCase(
        number=25,
        what="RECOVER TABLE",
        ddl="RECOVER TABLE `t`",
        mysql=_NO_ROWS,
        mariadb=_NO_ROWS,
        sqlite=_NO_ROWS,
    ),
    TypeCase(
        number=25,
        what="FLASHBACK TABLE … TO",
        ddl="FLASHBACK TABLE `t` TO `u`",
        table="u",
        mysql=_NO_ROWS,
        mariadb=_NO_ROWS,
        sqlite=_NO_ROWS,
    ),
    _alter(65, "TTL = …", "/*T![ttl] TTL = `at` + INTERVAL 1 DAY */ /*T![ttl] TTL_ENABLE = 'OFF' */", after=_t()),
    _alter(67, "REMOVE TTL", "/*T![ttl] REMOVE TTL */", after=_t()),
    # Columns
    _alter(5, "ADD COLUMN", "ADD COLUMN `c` INT NOT NULL DEFAULT 7 AFTER `id`", after=_t("id int!, c int!=7, v int, w varchar(20)!='x'")),
    _alter(
        5,
        "ADD COLUMN of type VECTOR",
        "ADD COLUMN `c` VECTOR(3)",
        after=_t(_BASE + ", c longtext"),
        mysql=_t(_BASE + ", c vector(3)"),
        sqlite=_t(_BASE + ", c vector(3)"),
        note="VECTOR is LONGTEXT where the sink has no such type",
    ),
    _alter(37, "ADD COLUMN, several", "ADD COLUMN (`c` INT,`d` INT DEFAULT 7)", after=_t(_BASE + ", c int, d int=7")),
    _alter(6, "DROP COLUMN", "DROP COLUMN `v`", after=_t("id int!, w varchar(20)!='x'")),
    _alter(38, "DROP COLUMN, several", "DROP COLUMN `v`, DROP COLUMN `w`", after=_t("id int!")),
    _alter(12, "MODIFY COLUMN", "MODIFY COLUMN `v` BIGINT NOT NULL", after=_t("id int!, v bigint!, w varchar(20)!='x'")),
    _alter(12, "CHANGE COLUMN", "CHANGE COLUMN `v` `n` BIGINT", after=_t("id int!, n bigint, w varchar(20)!='x'")),
    _alter(12, "RENAME COLUMN", "RENAME COLUMN `v` TO `n`", after=_t("id int!, n int, w varchar(20)!='x'")),
    _alter(15, "SET DEFAULT", "ALTER COLUMN `v` SET DEFAULT 5", after=_t("id int!, v int=5, w varchar(20)!='x'")),
    _alter(15, "DROP DEFAULT", "ALTER COLUMN `w` DROP DEFAULT", after=_t("id int!, v int, w varchar(20)!")),
    _alter(
        61,
        "Several clauses",
        "ADD COLUMN `c` INT, DROP COLUMN `v`, ADD INDEX `by_w`(`w`)",
        after=_t("id int!, w varchar(20)!='x', c int", "PRIMARY(id), by_w(w)"),
    ),
    # Indexes
    _alter(7, "ADD INDEX", "ADD INDEX `by_v`(`v`)", after=_t(keys="PRIMARY(id), by_v(v)")),
    TypeCase(
        number=7,
        what="CREATE UNIQUE INDEX",
        ddl="CREATE UNIQUE INDEX `by_v` ON `t` (`v`)",
        before=(_T,),
        after=_t(keys="PRIMARY(id), u:by_v(v)"),
    ),
    _alter(7, "ADD INDEX … INVISIBLE", "ADD INDEX `by_v`(`v`) INVISIBLE", after=_t(keys="PRIMARY(id), by_v(v)~")),
    _alter(
        7,
        "ADD INDEX of an expression",
        "ADD INDEX `low`((LOWER(`w`)))",
        after=_t(),
        mysql=_t(keys="PRIMARY(id), low(lower(`w`))"),
        sqlite=_t(keys="PRIMARY(id), low(LOWER(`w`))"),
        notes=(("mariadb", "skipped"), ("sqlite", "an empty index replaces it where SQLite computes another value")),
    ),
    TypeCase(
        number=7,
        what="CREATE UNIQUE INDEX of an expression",
        ddl="CREATE UNIQUE INDEX `low` ON `t` ((LOWER(`w`)))",
        before=(_T,),
        mysql=_t(keys="PRIMARY(id), low(lower(`w`))"),
        mariadb=Stops("unique index of an expression", "MariaDB has no indexes of expressions, and a unique one must not be skipped"),
        sqlite=Stops("cannot compute this expression", "SQLite computes another value, and a unique index must not be skipped"),
        notes=(("mysql", "the index is not unique, because the server may compute another value"),),
    ),
    _alter(8, "DROP INDEX", "DROP INDEX `by_v`", _T, _BY_V, after=_t()),
    _alter(8, "DROP INDEX that was skipped", "DROP INDEX `low`", _T, "ALTER TABLE `t` ADD INDEX `low`((LOWER(`w`)))", after=_t()),
    _alter(18, "RENAME INDEX", "RENAME INDEX `by_v` TO `v_by`", _T, _BY_V, after=_t(keys="PRIMARY(id), v_by(v)")),
    _alter(
        18,
        "RENAME INDEX that was skipped",
        "RENAME INDEX `low` TO `lower`",
        _T,
        "ALTER TABLE `t` ADD INDEX `low`((LOWER(`w`)))",
        after=_t(),
        mysql=_t(keys="PRIMARY(id), lower(lower(`w`))"),
        sqlite=_t(keys="PRIMARY(id), lower(LOWER(`w`))"),
    ),
    _alter(41, "ALTER INDEX … INVISIBLE", "ALTER INDEX `by_v` INVISIBLE", _T, _BY_V, after=_t(keys="PRIMARY(id), by_v(v)~")),
    _alter(
        32,
        "ADD PRIMARY KEY",
        "ADD PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */",
        "CREATE TABLE `t` (`id` INT NOT NULL,`v` INT,`w` VARCHAR(20) NOT NULL DEFAULT _UTF8MB4'x',UNIQUE KEY `u`(`id`))",
        after=_t(keys="PRIMARY(id), u:u(id)"),
    ),
    _alter(33, "DROP PRIMARY KEY", "DROP PRIMARY KEY", after=_t(keys="")),
    TypeCase(
        number=230,
        what="ADD FULLTEXT INDEX",
        ddl="ALTER TABLE `t` ADD FULLTEXT INDEX `f`(`w`) WITH PARSER MULTILINGUAL",
        before=(_T,),
        after=_t(keys="PRIMARY(id), f(w)"),
    ),
    TypeCase(
        number=231,
        what="CREATE HYBRID INDEX",
        ddl="CREATE HYBRID INDEX `h` ON `t` (`v`,`w`) PARAMETER '{}'",
        before=(_T,),
        after=_t(),
        sqlite=_t(keys="PRIMARY(id), h(v,w)"),
        note="skipped: it holds no rows, and only TiDB has it; in SQLite a plain one",
    ),
    # Foreign keys
    _alter(
        9,
        "ADD FOREIGN KEY",
        "ADD CONSTRAINT `f` FOREIGN KEY (`v`) REFERENCES `o`(`id`) ON DELETE CASCADE",
        _T,
        _O,
        after={"t": Shown(keys="PRIMARY(id), f(v)"), "o": Shown(rows=0)},
    ),
    _alter(
        10,
        "DROP FOREIGN KEY",
        "DROP FOREIGN KEY `f`",
        _T,
        _O,
        "ALTER TABLE `t` ADD CONSTRAINT `f` FOREIGN KEY (`v`) REFERENCES `o`(`id`)",
        after={"t": Shown(keys="PRIMARY(id), f(v)"), "o": Shown(rows=0)},
    ),
    # Partitions
    _alter(19, "ADD PARTITION", "ADD PARTITION (PARTITION `p2` VALUES LESS THAN (30))", _P, after=_t(partitions="p0:1 p1:1 p2:0")),
    _alter(
        19,
        "LAST PARTITION, as TiDB rewrites it",
        "ADD PARTITION (PARTITION `P_LT_30` VALUES LESS THAN (30),\n PARTITION `P_LT_40` VALUES LESS THAN (40))",
        _P,
        after=_t(partitions="p0:1 p1:1 P_LT_30:0 P_LT_40:0"),
    ),
    _alter(
        19,
        "LAST PARTITION, as it was typed",
        "LAST PARTITION LESS THAN (40)",
        _P,
        mysql=_BOUND,
        mariadb=_BOUND,
        sqlite=_t(),
    ),
    _alter(20, "DROP PARTITION", "DROP PARTITION `p0`", _P, after=_t(partitions="p1:1", rows=1), sqlite=_DELETES),
    _alter(23, "TRUNCATE PARTITION", "TRUNCATE PARTITION `p0`", _P, after=_t(partitions="p0:0 p1:1", rows=1), sqlite=_DELETES),
    _alter(
        42,
        "EXCHANGE PARTITION",
        "EXCHANGE PARTITION `p0` WITH TABLE `lab`.`o` WITH VALIDATION",
        _P,
        _O,
        after={"t": Shown(partitions="p0:0 p1:1", rows=1), "o": Shown(rows=1)},
        sqlite=_DELETES,
    ),
    _alter(
        64,
        "REORGANIZE PARTITION",
        "REORGANIZE PARTITION `p1` INTO (PARTITION `p1` VALUES LESS THAN (15),PARTITION `p2` VALUES LESS THAN (25))",
        _P,
        after=_t(partitions="p0:1 p1:1 p2:0"),
    ),
    _alter(
        71,
        "PARTITION BY",
        "PARTITION BY RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (MAXVALUE)) UPDATE INDEXES (`by_v` GLOBAL)",
        _T,
        _BY_V,
        after=_t(keys="PRIMARY(id), by_v(v)", partitions="p0:2"),
    ),
    _alter(72, "REMOVE PARTITIONING", "REMOVE PARTITIONING", _P, after=_t()),
    # What is about two types at once, or is TiDB's alone
    TypeCase(
        number=3,
        what="CREATE TABLE with a global unique index on a partitioned table",
        ddl="CREATE TABLE `t` (`id` INT,`v` INT,UNIQUE KEY `u`(`v`) /*T![global_index] GLOBAL */) PARTITION BY HASH (`id`) PARTITIONS 3",
        after=_t("id int, v int", "u:u(v)", rows=0),
        mariadb=_GLOBAL,
        mysql=_GLOBAL,
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE with a default from a sequence",
        ddl="CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` BIGINT DEFAULT NEXT VALUE FOR `lab`.`q`,`w` INT DEFAULT NEXTVAL(`q`))",
        after=_t("id int!, v bigint, w int", rows=0),
        sqlite=_t("id int!, v bigint=(NEXT VALUE FOR lab.q), w int=(NEXTVAL(`q`))", rows=0),
        note="the default is skipped: the values come with the rows",
    ),
    TypeCase(
        number=3,
        what="CREATE TABLE with generated columns and defaults that are expressions",
        ddl="CREATE TABLE `t` (`id` INT PRIMARY KEY,`g` INT GENERATED ALWAYS AS (`id` + 1) STORED,"
        "`at` DATETIME DEFAULT CURRENT_TIMESTAMP())",
        after=_t("id int!, g int, at datetime=CURRENT_TIMESTAMP", rows=0),
        mariadb=_t("id int!, g int, at datetime=current_timestamp()", rows=0),
        sqlite=_t("id int!, g int, at datetime=CURRENT_TIMESTAMP", rows=0),
    ),
    _alter(
        9,
        "ADD FOREIGN KEY to columns that are not unique",
        "ADD CONSTRAINT `f` FOREIGN KEY (`v`) REFERENCES `o`(`v`)",
        _T,
        _O,
        "CREATE INDEX `by_v` ON `o` (`v`)",
        after={"t": Shown(keys="PRIMARY(id), f(v)"), "o": Shown(keys="PRIMARY(id), by_v(v)", rows=0)},
    ),
    _alter(
        61,
        "DROP INDEX that was skipped, with another clause",
        "DROP INDEX `low`, ADD COLUMN `c` INT",
        _T,
        _LOW,
        after=_t(_BASE + ", c int"),
    ),
    # Types that TiCDC does not send
    _alter(16, "SHARD_ROW_ID_BITS", "SHARD_ROW_ID_BITS = 4", after=_t()),
    TypeCase(number=27, what="LOCK TABLES", ddl="LOCK TABLES `t` WRITE", before=(_T,), after=_t()),
    _alter(30, "SET TIFLASH REPLICA", "SET TIFLASH REPLICA 2", after=_t()),
    TypeCase(number=34, what="CREATE SEQUENCE", ddl="CREATE SEQUENCE `q` START WITH 1", table="q", after={"q": GONE}),
    _alter(39, "AUTO_ID_CACHE", "AUTO_ID_CACHE = 100", after=_t()),
    _alter(43, "ADD CHECK", "ADD CONSTRAINT `c` CHECK (`v` > 0) ENFORCED", after=_t()),
    _alter(49, "ATTRIBUTES", "ATTRIBUTES='merge_option=allow'", after=_t()),
    TypeCase(
        number=51, what="CREATE PLACEMENT POLICY", ddl="CREATE PLACEMENT POLICY `p` FOLLOWERS = 4", table="", before=(_T,), after=_t()
    ),
    _alter(54, "PLACEMENT POLICY of a partition", "PARTITION `p0` PLACEMENT POLICY = `p`", _P, after=_t(partitions="p0:1 p1:1")),
    _alter(56, "PLACEMENT POLICY", "PLACEMENT POLICY = `p`", after=_t()),
    _alter(57, "CACHE", "CACHE", after=_t()),
    _alter(58, "STATS_OPTIONS", "STATS_OPTIONS='{\"auto_recalc\": true}'", after=_t()),
    TypeCase(
        number=62,
        what="FLASHBACK CLUSTER",
        ddl="FLASHBACK CLUSTER TO TSO 1",
        table="",
        mysql=_NO_ROWS_BACK,
        mariadb=_NO_ROWS_BACK,
        sqlite=_NO_ROWS_BACK,
    ),
    TypeCase(number=68, what="CREATE RESOURCE GROUP", ddl="CREATE RESOURCE GROUP `g` RU_PER_SEC = 1", table="", before=(_T,), after=_t()),
    _alter(
        73,
        "ADD COLUMNAR INDEX",
        "ADD COLUMNAR INDEX `k`(`v`) USING INVERTED",
        after=_t(),
        sqlite=_t(keys="PRIMARY(id), k(v)"),
    ),
    _alter(
        73, "ADD VECTOR INDEX", "ADD VECTOR INDEX `k`((VEC_L2_DISTANCE(`w`))) USING HNSW", after=_t(), sqlite=_t(keys="PRIMARY(id), k(w)")
    ),
    # Views
    TypeCase(
        number=21,
        what="CREATE VIEW",
        ddl="CREATE ALGORITHM = UNDEFINED SQL SECURITY INVOKER VIEW `s` (`id`) AS SELECT `id` FROM `lab`.`t`",
        table="s",
        before=(_T,),
        after={"s": VIEW, **_t()},
    ),
    TypeCase(
        number=21,
        what="CREATE VIEW with a DEFINER",
        ddl="CREATE ALGORITHM = UNDEFINED DEFINER = `root`@`%` SQL SECURITY DEFINER VIEW `s` (`id`) AS SELECT `id` FROM `lab`.`t`",
        table="s",
        before=(_T,),
        after={"s": VIEW, **_t()},
        note="the sink's user needs a privilege for the DEFINER (sql/grants.sql)",
    ),
    TypeCase(
        number=24,
        what="DROP VIEW",
        ddl="DROP VIEW `lab`.`s`",
        table="s",
        before=(_T, "CREATE VIEW `s` (`id`) AS SELECT `id` FROM `lab`.`t`"),
        after={"s": GONE, **_t()},
    ),
)
