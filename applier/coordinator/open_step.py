"""The step that was returned and not confirmed yet: at most one at a time."""

from applier.coordinator.step import ApplySegment, ExecuteDdl, Step
from applier.model.errors import InvariantViolation
from applier.model.position import Ts


class OpenStep:
    """Holds the step, and how many reports there were when it was decided."""

    __slots__ = ("reports", "step")

    def __init__(self) -> None:
        self.step: Step | None = None
        self.reports = 0

    def open(self, step: Step | None, reports: int) -> None:
        """Open a step."""
        self.step, self.reports = step, reports

    def check_none(self) -> None:
        """Raise InvariantViolation if a step is open."""
        if self.step is not None:
            raise InvariantViolation("the last step is not confirmed or withdrawn yet", step=type(self.step).__name__)

    def close(self, step: Step) -> None:
        """Close the open step; InvariantViolation if it is another one."""
        if step is not self.step:
            raise InvariantViolation("the confirmed step is not the open one", step=type(step).__name__)
        self.step = None

    def begun_ts(self, checkpoint_ts: Ts) -> Ts:
        """Return the checkpoint, or what it becomes when the open step is confirmed."""
        match self.step:
            case ApplySegment():
                return self.step.upto_ts
            case ExecuteDdl():
                return self.step.identity.ts
            case _:
                return checkpoint_ts
