"""New topics: a topic that is added to a replica with a checkpoint must have no history below that checkpoint (DESIGN.md 3).

A topic is known when the sink stores positions of its streams. A new topic is checked by every partition that holds records: from its
first offset up to its first resolved event above the checkpoint, no row and no DDL may lie below the checkpoint. What comes later on
that partition may: it is a replay. The promise proves that: the producer had written everything below it, to all partitions, so a
listing fetched after all promises shows every partition that could still hold a missed row.

Until then no position of the topic is stored, so a restart at any moment checks it again from its first offset. The checkpoint cannot
move meanwhile: the watermark is held by the partitions that have not promised more. The positions are stored by the same transaction
that moves the checkpoint (or saves progress) after the topic was checked.
"""

from collections.abc import Iterable

from applier.model.errors import NeedsOperator
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeReport
from applier.model.segment import has_shown_past, is_past

REMEDY = (
    "Remove the topic from source.topics. To replicate its tables, create a new replica: dump the upstream with them, load the dump, "
    "set source.start_ts to the dump's TSO, and give the replica another `name`"
)


class NewTopics:
    """Known topics, and the streams of new topics that are not checked yet."""

    __slots__ = ("_known", "_unchecked")

    def __init__(self, known: Iterable[str]) -> None:
        self._known = set(known)
        self._unchecked: dict[str, set[Stream]] = {}

    def is_known(self, topic: str) -> bool:
        """Whether positions of the topic's streams may be stored."""
        return topic in self._known

    def join(self, stream: Stream, *, has_history: bool) -> None:
        """Record a stream that is read now. ``has_history``: the checkpoint has moved, so a new topic must be checked."""
        if stream.topic in self._known:
            return
        if has_history:
            self._unchecked.setdefault(stream.topic, set()).add(stream)
        else:
            self._known.add(stream.topic)

    def check(self, report: RangeReport, checkpoint_ts: Ts) -> None:
        """Compare a range of the contiguous prefix with the checkpoint. NeedsOperator if the topic has a history below it."""
        if not self._unchecked:
            return
        stream = report.range.stream
        waiting = self._unchecked.get(stream.topic, set())
        if stream not in waiting:
            return
        if report.early_ts and is_past(report.early_ts, checkpoint_ts):
            raise _missed_topic(stream, report.early_offset, report.early_ts, checkpoint_ts)
        if has_shown_past(report.resolved_ts, checkpoint_ts):
            waiting.remove(stream)

    def listed(self) -> None:
        """Take topics as known whose streams are all checked. Call it after all partitions of a listing have joined."""
        # Not at the last promise: another partition of the topic may have appeared meanwhile, and only a list shows it.
        checked = [topic for topic, waiting in self._unchecked.items() if not waiting]
        for topic in checked:
            del self._unchecked[topic]
        self._known.update(checked)


def _missed_topic(stream: Stream, offset: Offset, ts: Ts, checkpoint_ts: Ts) -> NeedsOperator:
    return NeedsOperator(
        "a new topic has events below the checkpoint: the replica has missed its history",
        remedy=REMEDY,
        kind="missed_topic",
        topic=stream.topic,
        partition=stream.partition,
        offset=offset,
        commit_ts=ts,
        checkpoint_ts=checkpoint_ts,
    )
