from applier.model.chunk import Chunk, bucket_of, bucket_seed, pack, split_of, unpack
from applier.model.events import ColumnShape, KnownKeys, Shape
from applier.model.position import Stream

SHAPE = Shape("Shop", "Orders", (ColumnShape("id", 8, 11),), KnownKeys(handle=("id",), primary=("id",), unique=()))
CHUNK = Chunk(
    origins=[(Stream("t", 3), SHAPE), (Stream("u", 0), SHAPE._replace(placeholder=True))],
    origin=[0, 1],
    commit_ts=[2**64 - 1, 7],
    kind=[1, 0],
    offset=[4, 5],
    index=[0, 1],
    key=[b"\x91\x01", b"\x91\x02"],
    image=[b"{}", b"\xff"],
)


def test_a_chunk_is_read_as_it_was_packed_and_says_what_selects_it() -> None:
    packed = pack(5, CHUNK)
    assert (packed.bucket, packed.min_ts, packed.max_ts, packed.rows) == (5, 7, 2**64 - 1, 2)
    assert unpack(packed.data) == CHUNK


def test_the_bucket_of_a_row_is_the_same_in_every_process_and_version() -> None:
    seed = bucket_seed(SHAPE)
    assert seed == 3037741618
    assert [bucket_of(seed, key, 8) for key in (b"\x91\x01", b"\x91\x02", b"")] == [7, 5, 2]


def test_it_depends_on_the_folded_name_and_not_on_columns_or_flags() -> None:
    assert bucket_seed(Shape("shop", "ORDERS", ())) == bucket_seed(SHAPE)
    assert bucket_seed(Shape("shop", "order", ())) != bucket_seed(SHAPE)
    assert bucket_seed(Shape("sho", "porders", ())) != bucket_seed(SHAPE)


def test_a_name_that_is_not_utf8_has_a_bucket() -> None:
    assert bucket_seed(Shape("shop", b"\xff".decode("utf-8", "surrogateescape"), ())) >= 0


def test_a_split_bucket_keeps_its_rows_apart_from_those_of_all_other_buckets() -> None:
    seed = bucket_seed(SHAPE)
    keys = [bytes([n]) for n in range(200)]
    splits = [split_of(seed, key, 8, 4) for key in keys]
    assert [number % 8 for number in splits] == [bucket_of(seed, key, 8) for key in keys]
    assert set(splits) == set(range(32))
    assert [split_of(seed, key, 8, 1) for key in keys] == [bucket_of(seed, key, 8) for key in keys]
