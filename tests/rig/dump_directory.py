"""Directories as Dumpling, mydumper and mysqldump write them."""

import gzip
import os

TS = 458173202432000000
BEGAN, ENDED = "Started dump at: 2026-11-10 10:40:19\n", "Finished dump at: 2026-11-10 10:40:20\n"
DUMPLING = BEGAN + "SHOW MASTER STATUS:\n\tLog: {log}\n\tPos: {ts}\n\tGTID:\n\n" + ENDED
MYDUMPER = f"# {BEGAN}[master]\n# Channel_Name = ''\nFile = tidb-binlog\nPosition = {{ts}}\n# {ENDED}"
HEADER = "-- MySQL dump\n--\n-- CHANGE MASTER TO MASTER_LOG_FILE='tidb-binlog', MASTER_LOG_POS={ts};\n"
ORDERS = (
    "CREATE TABLE `orders` (\n  `id` bigint NOT NULL,\n  `note` varchar(64) DEFAULT NULL,\n  `at` timestamp NULL DEFAULT NULL,\n"
    "  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;\n"
)
HEAD = "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n/*!40101 SET NAMES binary*/;\n"


def dumpling(directory, schema="shop", *, ts=TS, packed=False, view=True):
    """A schema with a table of two files, an empty table and a view."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {
        f"{schema}-schema-create.sql": f"{HEAD}CREATE DATABASE `{schema}` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n",
        f"{schema}.orders-schema.sql": HEAD + ORDERS,
        f"{schema}.orders.000000000.sql": f"{HEAD}INSERT INTO `orders` VALUES\n(0,'ä ''q''\\\\','2026-01-01 00:00:00'),\n(1,NULL,NULL);\n",
        f"{schema}.orders.000000001.sql": f"{HEAD}INSERT INTO `orders` VALUES\n(2,'x','0000-00-00 00:00:00');\n",
        f"{schema}.empty-schema.sql": f"{HEAD}CREATE TABLE `empty` (`id` int NOT NULL, PRIMARY KEY (`id`));\n",
    }
    if view:
        files[f"{schema}.v-schema.sql"] = f"{HEAD}CREATE TABLE `v`(\n`id` int\n)ENGINE=MyISAM;\n"
        files[f"{schema}.v-schema-view.sql"] = (
            f"{HEAD}DROP TABLE IF EXISTS `v`;\nDROP VIEW IF EXISTS `v`;\nCREATE VIEW `v` AS SELECT `id` FROM `{schema}`.`orders`;\n"
        )
    for name, text in files.items():
        if packed:
            (directory / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (directory / name).write_text(text)
    (directory / "metadata").write_text(DUMPLING.format(log="tidb-binlog", ts=ts))
    return directory


def age(path, seconds):
    """Make a file older than it is."""
    moment = path.stat().st_mtime - seconds
    os.utime(path, (moment, moment))
