"""The directory of one demo: configuration, replica, oracle, log."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from applier.config import Config, load_config
from applier.model.errors import ConfigError, Remedy
from applier.sources.formats import DEFAULT

TOPIC: Final = "changefeed"
MAX_TRANSACTION_ROWS: Final = 1000
"""Small segments, so that the kill falls between two of many."""
CONFIG_NAME: Final = "applier.toml"
"""A directory that holds this file was made by an earlier demo."""

CONFIG: Final = """\
# Written by `applier demo`. Its embedded broker has ended: put your own brokers here.
name = "demo"

[source]
protocol = "{protocol}"
bootstrap_servers = "{servers}"
topics = ["{topic}"]
ddl_time_zone = "+08:00"    # the simulated upstream's sessions are there

[sink]
url = "sqlite:///{replica}"
max_transaction_rows = {rows}

[spark]
master = "local[2]"

[spark.conf]
"spark.local.dir" = "{spark}"
"""
HTTP: Final = """
[http]
listen = "{host}:{port}"
"""
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class DemoDirectory:
    """The files of a demo, by what they are for."""

    path: Path

    @property
    def replica(self) -> Path:
        """The SQLite file that the applier writes."""
        return self.path / "replica.db"

    @property
    def oracle(self) -> Path:
        """The database in which upstream's transactions were executed, as it is at the end."""
        return self.path / "oracle.db"

    @property
    def oracle_at_kill(self) -> Path:
        """The oracle as it was at the checkpoint of the killed run."""
        return self.path / "oracle_at_kill.db"

    @property
    def config(self) -> Path:
        """The configuration of the catch-ups."""
        return self.path / CONFIG_NAME

    @property
    def log(self) -> Path:
        """Standard error of the catch-ups."""
        return self.path / "catchup.log"

    @property
    def daemon_log(self) -> Path:
        """Standard error of the daemon of ``--live``."""
        return self.path / "daemon.log"

    @property
    def spark(self) -> Path:
        """Spark's scratch space: a killed run cannot clear it."""
        return self.path / "spark"

    def clear(self) -> None:
        """Remove the files of an earlier demo; ConfigError if the directory holds anything else."""
        if self.path.exists() and not self.config.exists() and any(self.path.iterdir()):
            raise ConfigError(
                "the directory of the demo is not empty",
                remedy=Remedy("demo.choose-directory", "Choose another one with --dir"),
                directory=self.path,
            )
        self.path.mkdir(parents=True, exist_ok=True)
        # By name, not the whole directory: --dir may hold files of its owner beside ours.
        for name in ("replica.db*", "oracle*.db*", self.log.name, self.daemon_log.name):
            for path in self.path.glob(name):
                path.unlink()
        shutil.rmtree(self.spark, ignore_errors=True)

    def write_config(self, servers: str, port: int | None = None, protocol: str = DEFAULT) -> Config:
        """Write the configuration, and read it back as the catch-ups do. ``port``: of the daemon's page."""
        replica, spark = (path.resolve() for path in (self.replica, self.spark))
        # Absolute paths: the user copies the file, and the catch-up may run elsewhere.
        text = CONFIG.format(servers=servers, protocol=protocol, topic=TOPIC, replica=replica, rows=MAX_TRANSACTION_ROWS, spark=spark)
        text += "" if port is None else HTTP.format(host=LOOPBACK, port=port)
        self.config.write_text(text, encoding="utf-8")
        return load_config(self.config, environment={})
