"""The configuration: read once at the edge, checked whole before anything is opened, passed on as frozen values."""

from applier.config.load import load_config
from applier.config.model import Config, DdlPolicy, HttpConfig, LogConfig, RunConfig, SinkConfig, SourceConfig, SparkConfig
from applier.config.origin import forget

__all__ = [
    "Config",
    "DdlPolicy",
    "HttpConfig",
    "LogConfig",
    "RunConfig",
    "SinkConfig",
    "SourceConfig",
    "SparkConfig",
    "forget",
    "load_config",
]
