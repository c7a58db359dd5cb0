"""A runner in this process whose calls a test can hold, answer itself, and look at afterwards."""

from collections import defaultdict, deque
from threading import Event, Lock

from tests.rig.local_runner import LocalRunner

LONG_S = 60


class GatedRunner(LocalRunner):
    """``calls``: what was begun, with the end of its last segment; ``answers``: what the next calls give instead of being made."""

    def __init__(self, reader, decoder):
        super().__init__(reader, decoder)
        self.calls, self.ended, self.answers = [], [], defaultdict(deque)
        self._gates, self._at_work, self._lock = {}, set(), Lock()

    def hold(self, what):
        """Let no call of this kind end until it is ``let_go``."""
        self._gates[what] = Event()

    def let_go(self, what):
        self._gates.pop(what).set()

    def numbers(self, what):
        """What was noted of the calls of one kind."""
        return [noted for kind, noted in self.calls if kind == what]

    def _call(self, what, noted, work):
        self.calls.append((what, noted))
        with self._lock:
            self._at_work.add(what)
        if what in self._gates:
            assert self._gates[what].wait(LONG_S)
        answer = self.answers[what].popleft() if self.answers[what] else None
        found = work() if answer is None else answer
        with self._lock:
            self._at_work.discard(what)
        self.ended.append(what)
        return found

    def listen(self, tasks):
        offsets = sum(task.range.end - task.range.start for task in tasks)
        return self._call("listen", offsets, lambda: super(GatedRunner, self).listen(tasks))

    def prepare(self, plan):
        if self._at_work & {"apply"}:
            return super().prepare(plan)  # a part of applying
        return self._call("prepare", tuple(window.upto_ts for window in plan.windows), lambda: super(GatedRunner, self).prepare(plan))

    def write(self, prepared, segment, plan):
        if self._at_work & {"apply"}:
            return super().write(prepared, segment, plan)
        return self._call("write", plan.commit.checkpoint_ts, lambda: super(GatedRunner, self).write(prepared, segment, plan))

    def apply(self, plan, write_plan):
        return self._call("apply", write_plan.commit.checkpoint_ts, lambda: super(GatedRunner, self).apply(plan, write_plan))

    def release_all(self):
        assert not self._at_work, "something is released that a lane works with"
        self.calls.append(("release_all", None))
        super().release_all()
