"""``applier demo`` as a user runs it: a process that ends with 0 only if the replica equals upstream. Open Protocol: the live demo."""

import json
import re
import shlex
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    directory = tmp_path_factory.mktemp("demo") / "files"
    command = [
        sys.executable,
        "-m",
        "applier",
        "demo",
        "--dir",
        str(directory),
        "--transactions",
        "400",
        "--seed",
        "3",
        "--protocol",
        "canal-json",
    ]
    return directory, subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def applier(directory, *arguments):
    command = [sys.executable, "-m", "applier", *arguments, "--config", str(directory / "applier.toml")]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_demo_is_killed_resumes_and_ends_equal(demo):
    _, done = demo
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed with SIGKILL" in done.stdout
    assert "the killed replica equals upstream at that checkpoint" in done.stdout
    assert "as run 2 (killed: run 1)" in done.stdout
    assert "the replica equals upstream (" in done.stdout
    assert "differs" not in done.stdout
    assert done.stderr == ""


def test_what_the_demo_leaves_can_be_looked_at(demo):
    directory, _ = demo
    assert sorted(path.name for path in directory.glob("*.db")) == ["oracle.db", "oracle_at_kill.db", "replica.db"]
    assert not (directory / "spark").exists()
    shown = applier(directory, "ddl", "list", "--json")
    assert shown.returncode == 0, shown.stderr
    assert {entry["state"] for entry in json.loads(shown.stdout)} == {"done"}


def test_the_last_words_are_commands_that_work_as_they_stand(demo):
    _, done = demo
    commands = [line.partition("  # ")[0].strip() for line in done.stdout.partition("What to try next:")[2].strip().splitlines()]
    assert [name for command in commands for name in re.findall(r"applier (\w+)", command)] == ["status", "ddl", "demo", "init"]
    shown = [subprocess.run(shlex.split(command), capture_output=True, text=True, check=False, timeout=60) for command in commands[:-2]]
    assert all(step.stdout for step in shown)
    assert [step.stderr for step in shown] == [""] * len(shown)
    assert [step.returncode for step in shown if step.args[-1].endswith("applier.toml") and "ddl" in step.args] == [0]
