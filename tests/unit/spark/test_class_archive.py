"""The archive of Spark's classes: used where it is ours and nobody has chosen another; made by a step of the installation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from applier.spark.class_archive import archive_options, archive_path


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = archive_path()
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)
    return path


def test_an_archive_is_used_if_it_is_there(archive):
    assert archive_options("-Dx=1").startswith(f"-XX:SharedArchiveFile={archive} -Xshare:auto")
    archive.unlink()
    assert archive_options("-Dx=1") == ""


@pytest.mark.parametrize("given", ["-XX:SharedArchiveFile=other", "-Dx=1 -XX:ArchiveClassesAtExit=new", "-Xshare:off"])
def test_an_operator_chooses_another_archive_or_none(archive, given):
    assert archive_options(given) == ""


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_archive_that_others_may_write_is_not_used(archive, mode):
    archive.chmod(mode)
    assert archive_options("") == ""
    archive.chmod(0o600)
    archive.parent.chmod(0o700 | mode)
    assert archive_options("") == ""


def test_each_java_and_each_cache_has_its_own_archive(archive, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", "/opt/another/java")
    other = archive_path()
    assert (other.parent, other.suffix) == (archive.parent, ".jsa")
    assert other != archive
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a directory"))
    named = archive_path()
    named.parent.mkdir(parents=True)
    named.touch()
    assert archive_options("") == "", "Spark's launcher splits options at spaces"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert archive_path() is None


@pytest.mark.slow
def test_java_starts_from_the_archive_and_without_one_that_is_damaged(tmp_path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "SPARK_SUBMIT_OPTS": ""}
    made = subprocess.run(
        [sys.executable, "-m", "applier.spark.make_class_archive"], capture_output=True, text=True, check=True, env=environment
    )
    archive = Path(made.stdout.strip())
    assert archive.parent == tmp_path / "applier"
    assert list(archive.parent.iterdir()) == [archive]
    assert "cds" not in made.stderr

    def classes_from_archive():
        code = """
from applier.spark.session import start_context
context = start_context("test", "local[1]", {"spark.driver.extraJavaOptions": "-Xlog:class+load:stdout"})
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        return sum("org.apache.spark" in line and "shared objects file (top)" in line for line in done.stderr.splitlines())

    assert classes_from_archive() > 500
    archive.write_bytes(archive.read_bytes()[:1_000_000])
    assert classes_from_archive() == 0
