"""An archive of the classes that Spark loads: with it a JVM needs half of the CPU until its first jobs have run (2.8 s of 5.6).

``make_class_archive`` makes it, as a step of the installation. A run uses it if it is there. Java itself compares it with its own version
and with Spark's jars, and starts without it if they differ.
"""

import os
import shutil
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark

QUIET: Final = "-Xshare:auto -Xlog:cds*=off"
"""Java does not report an archive that does not fit."""
CHOSEN: Final = ("-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-Xshare:")
"""Options of an operator who has chosen an archive, or none."""


def archive_path() -> Path | None:
    """Return the path of the archive of this Java and this Spark; None without a Java or a home directory."""
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else shutil.which("java")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path.expanduser raises without a home
    if java is None or not Path(cache).is_absolute():
        return None
    installed = f"{os.path.realpath(java)} {Path(pyspark.__file__).parent}"
    return Path(cache) / "applier" / f"spark-{pyspark.__version__}-{sha256(installed.encode()).hexdigest()[:12]}.jsa"


def archive_options(given: str) -> str:
    """Return the options by which a JVM uses the archive; '' if there is none, or if ``given`` says something about archives."""
    path = archive_path()
    if path is None or any(option in given for option in CHOSEN) or not _is_ours(path):
        return ""
    return f"-XX:SharedArchiveFile={path} {QUIET}"


def _is_ours(path: Path) -> bool:
    """Whether no one else can have written the archive: its classes run in our JVM."""
    with suppress(OSError):
        found = (path.stat(), path.parent.stat())
        is_safe = all(status.st_uid in {0, os.geteuid()} and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for status in found)
        # Spark's launcher splits options at spaces.
        return is_safe and stat.S_ISREG(found[0].st_mode) and not set(str(path)) & set(" \t'\"\\")
    return False
