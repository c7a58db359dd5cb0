"""The changelog as a DataFrame: ``format("ticdc")`` reads topics, ``format("binlog")`` a server's binlog; by PySpark's Python data sources.

The engine's decoder reads the records; nothing is applied, and no offset is stored anywhere but in a query's own checkpoint.
Read ``changelog`` first: the columns of a row.
"""

import logging
import sys
from importlib import import_module
from importlib.util import find_spec

from pyspark.sql import SparkSession

from applier.dataframe.binlog_source import BinlogChangelogSource
from applier.dataframe.source import ChangelogSource
from applier.model.errors import ConfigError, Remedy
from applier.sources.factory import CHANGELOGS
from applier.sources.kafka.settings import LOGGER as KAFKA_LOGGER
from applier.spark.python_check import probe

__all__ = ["BinlogChangelogSource", "ChangelogSource", "register"]

# Spark's planning process configures no logging: Python would print each of librdkafka's lines, hundreds while a broker is away. The
# error that ends the reading has the cause.
KAFKA_LOGGER.addHandler(logging.NullHandler())


def register(spark: SparkSession) -> None:
    """Make the formats ``ticdc`` and ``binlog`` known to a session. ConfigError: no pyarrow, or the workers have another Python."""
    if find_spec("pyarrow") is None:
        raise ConfigError(
            "the formats ticdc and binlog need pyarrow",
            remedy=Remedy("dataframe.install-pyspark", 'Install it on the driver and the executors: pip install "cdc-applier[dataframe]"'),
        )
    # A session of Spark Connect has no context here: its server has the Python.
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        _check_python(context.pythonExec)
    for path in CHANGELOGS:
        module, _, name = path.partition(":")
        spark.dataSource.register(getattr(import_module(module), name))


def _check_python(path: str) -> None:
    # Spark plans the reading in this Python too, and would report it as a stack of Java.
    if path != sys.executable and (found := probe(path)).problem:
        remedy = Remedy("dataframe.set-pyspark-python", f"Set PYSPARK_PYTHON={sys.executable} in the environment before the session starts")
        message = "the Python of Spark's workers cannot read the formats ticdc and binlog"
        raise ConfigError(message, remedy=remedy, python=path, cause=found.problem)
