"""``kill -9`` of the driver at random moments: after each one the file is upstream at one moment, at the end it is identical."""

import random
import time
from contextlib import ExitStack

import pytest

from tests.rig.program import catchup, run, write_config
from tests.rig.upstream import differences_now, fence_of, small_upstream

STARTING_SHARE = 0.25
STARTING_S, INSIDE_S = 3.0, 0.25
WINDOWS = 9
"""A run is killed while it starts, or some windows (at most these) after it has begun to write, at any instant of the next one."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def kill_somewhere(program, rng, url):
    """Kill the driver at a random moment; False if it had ended before."""
    if rng.random() < STARTING_SHARE:
        windows, within_s = 0, STARTING_S
    else:
        windows, within_s = rng.randint(1, WINDOWS), INSIDE_S
    begun = fence_of(url)[1]
    if not program.reaches(lambda: fence_of(url)[1] >= begun + windows):
        return False
    moment = time.monotonic() + rng.uniform(0, within_s)
    program.reaches(lambda: time.monotonic() >= moment)
    return program.kill()


class Kills:
    """Kills and restarts over one replica after the other."""

    def __init__(self, directory, servers, world, processes):
        self._directory, self._servers, self._world, self._processes = directory, servers, world, processes
        self._rng = random.Random(20)
        self._killed = []
        self.replicas = 0
        self.epochs = []

    def until(self, kills):
        while len(self._killed) < kills:
            self._one_replica(kills)

    def _one_replica(self, kills):
        self.replicas += 1
        url = f"sqlite:///{self._directory}/replica{self.replicas}.db"
        config = write_config(
            self._directory, servers=self._servers, url=url, topics=list(self._world.topics), protocol=self._world.protocol
        )
        while len(self._killed) < kills:
            program = self._processes.enter_context(catchup(config))
            if not kill_somewhere(program, self._rng, url):
                assert program.wait().code == 0
                break
            self._look_after_the_kill(program, url)
        self._look_at_the_end(config, url)

    def _look_after_the_kill(self, program, url):
        """Every second time start again at once: a writer that the dead driver left may still be at work, and the fence must hold it."""
        self._killed.append(program)
        if len(self._killed) % 2:
            self._expect_no_orphans()
            assert differences_now(self._world.history, url) == []

    def _expect_no_orphans(self):
        assert [program.orphans() for program in self._killed] == [[]] * len(self._killed)

    def _look_at_the_end(self, config, url):
        ended = run(config)
        self._expect_no_orphans()
        assert ended.code == 0, ended.stderr
        assert ended.result["checkpoint_ts"] == self._world.final_ts
        assert self._world.wrong_in(url) == []
        self.epochs.append(fence_of(url)[0])


@pytest.mark.parametrize("number", [6, pytest.param(20, marks=pytest.mark.soak(reason="each kill is a start of Spark: 12 s"))])
def test_the_sink_is_identical_after_kills_at_random_moments_and_every_ddl_ran_once(number, tmp_path, mock_kafka):
    world = small_upstream(20, f"killed-{number}", transactions=120)
    world.produce(mock_kafka)
    with ExitStack() as processes:
        kills = Kills(tmp_path, mock_kafka, world, processes)
        kills.until(number)
    assert sum(kills.epochs) > number // 2, "most kills fell before the replica was owned: nothing was shown"
