r"""Land the changelog of a topic in Parquet, and show one row as it was at a time. Nothing is applied anywhere.

python land_changelog.py --servers kafka:9092 --topic changefeed --table shop.orders --to /data/orders \
    --key '{"id":5}' --at 2025-06-01T12:00:00Z

A value that its column's type cannot hold, such as the date 0000-00-00, ends it; the message has the --columns that hold it:
--columns 'id BIGINT, born STRING'. The columns are part of the files: choose them before the first run, or land into a new directory.
"""

import argparse
import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's documentation has it

from applier.dataframe import register


def land(spark: SparkSession, options: dict[str, str], directory: str) -> None:
    """Append what has come since the last call. A call that dies in the middle is repeated: no row is lost, none comes twice."""
    changes = spark.readStream.format("ticdc").options(**options).load()
    query = (
        changes.withColumn("day", F.to_date("commit_time"))
        .writeStream.format("parquet")
        .option("path", f"{directory}/rows")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .partitionBy("day")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


EMPTIED = r"(?i)^\s*(truncate|drop\s+table)\b"


def row_at(changes: DataFrame, key: str, time: str) -> dict[str, object] | None:
    """Return the row of a key as it was at a time; None: there was none. ``key``: the JSON object of the column ``key``.

    ``changes``: of one table. TRUNCATE and DROP TABLE are seen; DDLs that remove rows of a partition, or a schema, are not.
    """
    changes = changes.where(F.col("commit_time") <= F.lit(time).cast("timestamp"))
    emptied = changes.where((F.col("op") == "ddl") & F.col("query").rlike(EMPTIED)).agg(F.max("commit_ts")).first()
    is_left = (F.col("op") == "delete") | (F.col("key") != key)  # or an update gave the row another key
    version = (
        changes.where(F.col("op").isin("insert", "update", "delete"))
        .where((F.col("key") == key) | (F.col("old_key") == key))
        .where(F.col("commit_ts") > (emptied[0] if emptied and emptied[0] else 0))
        # In one transaction a row may be deleted and written again: then it is there.
        .orderBy(F.col("commit_ts").desc(), is_left)
        .select(F.when(~is_left, F.col("after")).alias("row"))
        .first()
    )
    if version is None or version["row"] is None:
        return None
    row = version["row"]
    return dict(json.loads(row)) if isinstance(row, str) else dict(row.asDict())


def main() -> None:
    """Land what is there, then look the row up."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("servers", "topic", "table", "to", "key", "at"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--columns", help="the columns and their types, as Spark writes them; default: what the records have")
    given = parser.parse_args()
    options = {"bootstrap_servers": given.servers, "topics": given.topic, "table": given.table}
    if given.columns:
        options["columns"] = given.columns
    spark = SparkSession.builder.appName("land changelog").getOrCreate()
    register(spark)
    land(spark, options, given.to)
    print(row_at(spark.read.parquet(f"{given.to}/rows"), given.key, given.at))  # noqa: T201 - the answer
    spark.stop()


if __name__ == "__main__":
    main()
