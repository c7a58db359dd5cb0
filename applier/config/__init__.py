"""The configuration: read once by a command, checked completely before anything is opened, passed on as frozen values.

One module per section of the file. May import the settings of ``sinks`` and ``sources``, never the engine: ``run/assembly`` turns values
into the engine's settings. Read ``model`` first, then ``load``.
"""

from applier.config.http import HttpConfig
from applier.config.load import load_config, remove_from_environment
from applier.config.model import Config, LogConfig, RunConfig
from applier.config.section import DdlPolicy
from applier.config.sink import SinkConfig
from applier.config.source import SourceConfig
from applier.config.spark import SparkConfig

__all__ = [
    "Config",
    "DdlPolicy",
    "HttpConfig",
    "LogConfig",
    "RunConfig",
    "SinkConfig",
    "SourceConfig",
    "SparkConfig",
    "load_config",
    "remove_from_environment",
]
