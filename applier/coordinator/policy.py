"""How much is read ahead, cached and written at once: frozen, apart from the state that it governs."""

from collections.abc import Mapping
from dataclasses import dataclass

from applier.model.topic_name import PartitionLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPolicy:
    """How rows are written ahead of W (``consistency = "row"``): about ``most_rows`` at a time.

    ``by_table``: the producer sends a whole table to one partition; else each key. ``settle_span``: how many timestamps after a change
    of the partition set a node of the producer may still send rows to the old partitions.
    """

    by_table: bool
    settle_span: int
    most_rows: int = 400_000
    checks_beginning: bool = True
    """Whether a new replica looks if the partitions of a topic were always there; else it assumes so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How much is read ahead and written at once. ``required_partitions``: topic -> how many of its partitions count (None: all).

    Up to ``plan_bytes`` are read at a time, at first ``first_plan_bytes``, in ranges of up to ``range_records`` offsets; all else that is
    read ahead is measured by ``plan_bytes`` (``Budget``). With ``cached_bytes`` in the cache only the streams that hold the watermark are
    read, and spill. More than ``merge_ranges`` cached ranges of a stream are merged. A segment is cut near ``segment_rows``.
    """

    # run/assembly sets the first two and the last from the configuration. The others were chosen so that a job's fixed cost vanishes and
    # that it still lasts few seconds (plan_bytes), that the first rows are visible soon (first_plan_bytes), and that the number of cached
    # ranges stays small on a stream that does not resolve (merge_ranges; see ``Merges``).
    required_partitions: Mapping[str, int] | PartitionLimits | None = None
    segment_rows: int = 100_000
    range_records: int = 100_000
    first_plan_bytes: int = 4 << 20
    plan_bytes: int = 64 << 20
    merge_ranges: int = 24
    cached_bytes: int = 2 << 30
    rows: RowPolicy | None = None
    """None: ``consistency = "transaction"``."""
