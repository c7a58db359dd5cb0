"""How much is read ahead, cached and written at once: frozen, apart from the state that it governs."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How much is read ahead and written at once. ``required_partitions``: topic -> how many of its partitions count (None: all).

    A stream is given up to ``ranges_per_stream`` ranges of up to ``range_records`` offsets at a time. Streams ahead of the watermark get
    none while they lead by ``lead_ranges`` cached ranges or the cache holds ``cached_bytes``; then the others get one at a time, and
    spill. More than ``merge_ranges`` cached ranges of a stream are merged. A segment is cut near ``segment_rows``.
    """

    # run/assembly sets the first two and the last from the configuration. The others were chosen so that a job's fixed cost vanishes
    # (range_records), that a few ranges per stream are on their way (ranges_per_stream), and that the number of cached ranges stays
    # small on a stream that does not resolve (merge_ranges; see ``merging``).
    required_partitions: Mapping[str, int] | None = None
    segment_rows: int = 100_000
    range_records: int = 100_000
    ranges_per_stream: int = 4
    lead_ranges: int = 16
    merge_ranges: int = 24
    cached_bytes: int = 2 << 30
