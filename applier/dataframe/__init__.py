"""The changelog as a DataFrame: ``spark.read.format("ticdc")`` and ``spark.readStream.format("ticdc")``, by PySpark's Python data sources.

The engine's decoder reads the records; nothing is applied, and no offset is stored anywhere but in a query's own checkpoint.
Read ``changelog`` first: the columns of a row.
"""

from importlib.util import find_spec

from pyspark.sql import SparkSession

from applier.dataframe.source import ChangelogSource
from applier.model.errors import ConfigError

__all__ = ["ChangelogSource", "register"]


def register(spark: SparkSession) -> None:
    """Make the format ``ticdc`` known to a session. ConfigError if pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise ConfigError(
            "the format ticdc needs pyarrow", remedy='Install it on the driver and the executors: pip install "applier[dataframe]"'
        )
    spark.dataSource.register(ChangelogSource)
