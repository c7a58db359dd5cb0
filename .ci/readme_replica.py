"""Make a replica by the README alone, with the installed program: ``python readme_replica.py README.md``.

The commands and the configuration are taken from the README's section "Ten minutes to a replica". Changed are only the addresses: an
embedded broker with a simulated upstream that began empty (so no dump and no start_ts), and a SQLite file. At the end every value of
the replica is compared with upstream.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from applier.demo.comparison import compare
from applier.demo.simulator.broker import MockBroker
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer import Producer, ProducerOptions

PAGE: Final = "127.0.0.1:19464"
READY_S: Final = 120
NEEDS_A_SERVER: Final = {"load", "verify"}
"""Commands about a dump of TiDB, and about TiDB itself."""


def main(readme: Path) -> None:
    """Follow the section, and compare."""
    section = readme.read_text(encoding="utf-8").partition("## Ten minutes to a replica")[2].partition("\n## ")[0]
    history = History(11, HistoryOptions(transactions=300, ddl_share=0.01))
    with MockBroker() as broker:
        options = ProducerOptions(seed=11, topic="changefeed", dispatcher=Dispatcher.INDEX_VALUE, partitions=4)
        produce_log(Producer(history, options).log(), broker.bootstrap_servers)
        Path("applier.toml").write_text(configuration(section, broker.bootstrap_servers), encoding="utf-8")
        follow(section)
    problems = [problem for verdict in compare(Path("replica.db"), history, Path("oracle.db")) for problem in verdict.problems]
    if problems:
        raise SystemExit("the replica differs from upstream:\n" + "\n".join(problems))


def configuration(section: str, servers: str) -> str:
    """Return the README's applier.toml with the addresses of this test."""
    text = textwrap.dedent(re.findall(r"( *)```toml\n(.*?)```", section, re.DOTALL)[0][1])
    for pattern, replacement in (
        (r"kafka\.example:9092", servers),
        (r"mysql\+pymysql://applier@mariadb\.example:3306/", "sqlite:///replica.db"),
        (r"(?m)^start_ts = .*\n", ""),
    ):
        text, changed = re.subn(pattern, replacement, text)
        if changed != 1:
            raise SystemExit(f"the README's configuration does not have {pattern} once")
    return text


def follow(section: str) -> None:
    """Run the section's commands in their order; ``run`` stays until the end."""
    lines = [line.strip() for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
    commands = [
        words for line in lines if line.startswith("applier ") if (words := shlex.split(line, comments=True))[1] not in NEEDS_A_SERVER
    ]
    names = [words[1] for words in commands]
    if names != ["check", "catchup", "run", "status"]:
        raise SystemExit(f"the README's commands are {names}")
    for words in commands[:2]:
        call(words)
    with daemon(commands[2]):
        call(commands[3])


def call(words: list[str]) -> None:
    """Run a command; SystemExit if it fails."""
    sys.stdout.write(f"$ {shlex.join(words)}\n")
    sys.stdout.flush()
    code = subprocess.run(words, check=False, env=os.environ | {"APPLIER_HTTP__LISTEN": PAGE}).returncode  # noqa: S603 - the README's
    if code:
        raise SystemExit(f"{shlex.join(words)}: exit code {code}")


@contextmanager
def daemon(words: list[str]) -> Iterator[None]:
    """Run a command until it is ready, then until the block ends; SystemExit if it does not end with 0 by SIGTERM."""
    sys.stdout.write(f"$ {shlex.join(words)} &\n")
    sys.stdout.flush()
    process = subprocess.Popen(words, env=os.environ | {"APPLIER_HTTP__LISTEN": PAGE})  # noqa: S603 - the README's
    try:
        deadline = time.monotonic() + READY_S
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{shlex.join(words)} is not ready: exit code {process.poll()}")
            time.sleep(0.2)
        yield
        process.send_signal(signal.SIGTERM)
        if code := process.wait(timeout=60):
            raise SystemExit(f"{shlex.join(words)} ended with {code}")
    finally:
        process.kill()


def is_ready() -> bool:
    """Return whether the daemon says that it is ready."""
    with suppress(OSError), urllib.request.urlopen(f"http://{PAGE}/readyz", timeout=2) as answer:
        return bool(answer.status == 200)
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
