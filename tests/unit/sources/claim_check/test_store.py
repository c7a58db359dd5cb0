"""Claim-check objects are read from directories and from a real S3-compatible server; every failure says what it means."""

import pickle
import sys
import threading

import pytest
import stamina

from applier.model.errors import ConfigError, ProtocolError
from applier.sources.claim_check import store as module
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.claim_check.store import FsspecStore
from tests.rig.s3 import OPTIONS, answering, s3_server


@pytest.fixture(autouse=True)
def no_waiting():
    stamina.set_testing(True, attempts=3)
    yield
    stamina.set_testing(False)


@pytest.fixture(scope="module")
def s3():
    with s3_server() as server:
        yield server


def stored(storage, **settings):
    return pickle.loads(pickle.dumps(FsspecStore(ClaimCheckSettings(storage=str(storage), **settings))))  # noqa: S301 - our own bytes


def read_one(store, name="a.json"):
    (found,) = store.read([name])
    return found


def problem(found):
    return found.facts["kind"], found.message


def test_objects_of_a_directory_come_in_the_order_of_their_names(tmp_path):
    for number in range(30):
        (tmp_path / f"{number}.json").write_bytes(str(number).encode() * number)
    names = [f"{number}.json" for number in (7, 3, 29, 3, 0, *range(30))]
    for storage in (tmp_path, f"file://{tmp_path}", f"nfs://{tmp_path}/"):
        assert list(stored(storage).read(names)) == [(tmp_path / name).read_bytes() for name in names]


def test_objects_of_a_bucket_are_read(s3):
    for number in range(20):
        s3.put(f"{number}.json", bytes([number]) * 10_000)
    s3.put("empty.json", b"")
    store = stored(s3.storage, options=s3.options)
    assert list(store.read([f"{number}.json" for number in range(20)])) == [bytes([number]) * 10_000 for number in range(20)]
    assert read_one(store, "empty.json") == b""


def test_s15_an_object_that_is_not_there_is_an_error_at_once_that_names_it(tmp_path, s3):
    tmp_path.joinpath("directory").mkdir()
    for store, name in (
        (stored(tmp_path), "gone.json"),
        (stored(tmp_path), "directory"),
        (stored(s3.storage, options=s3.options), "gone.json"),
    ):
        found = read_one(store, name)
        assert isinstance(found, ProtocolError)
        assert problem(found) == ("claim_check", "the claim-check object does not exist")
        assert found.facts["object"] == f"{store.settings.storage}/{name}"
        assert "Restore it" in found.remedy


def test_a_storage_that_is_not_there_is_not_taken_for_deleted_objects(tmp_path, s3):
    for store in (stored(tmp_path / "not mounted"), stored("s3://other/large", options=s3.options)):
        found = read_one(store)
        assert not isinstance(found, ProtocolError)
        assert problem(found) == ("claim_check_storage", "the claim-check storage does not exist")


def test_an_object_beyond_the_limit_is_refused_and_never_held(tmp_path):
    tmp_path.joinpath("a.json").write_bytes(b"x" * 1000)
    assert read_one(stored(tmp_path, max_object_bytes=1000)) == b"x" * 1000
    found = read_one(stored(tmp_path, max_object_bytes=999))
    assert isinstance(found, ProtocolError)
    assert problem(found) == ("claim_check", "the claim-check object is larger than source.claim_check.max_object_size")


def test_d36_what_may_pass_is_retried():
    answers = [(503, {}, b""), None, (206, {"Content-Length": "100"}, b"cut"), (206, {}, b"whole")]
    stamina.set_testing(True, attempts=9)
    seen = []

    def answer(_, path):
        seen.append(path)
        return answers[min(len(seen), len(answers)) - 1]

    with answering(answer) as server:
        assert read_one(stored(server.storage, options=server.options)) == b"whole"


@pytest.mark.parametrize("answer", [(503, {}, b""), (500, {}, b""), None, (206, {"Content-Length": "100"}, b"cut")])
def test_a_storage_that_does_not_answer_may_be_retried_by_the_daemon(answer):
    with answering(lambda _number, _path: answer) as server:
        found = read_one(stored(server.storage, options=server.options))
    assert problem(found) == ("unreachable", "the claim-check storage does not answer")
    assert found.facts["cause"]
    assert 3 <= len(server.requests) <= 6  # aiohttp repeats a request on a connection that was closed


def test_a_server_that_is_not_there_is_unreachable():
    with answering(lambda *_: None) as server:
        options = server.options
    assert read_one(stored("s3://changefeed/large", options=options)).facts["kind"] == "unreachable"


def test_a_server_that_is_silent_is_unreachable(monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 0.3)
    silent = threading.Event()
    try:
        with answering(lambda _number, _path: silent.wait(20) and None) as server:
            found = read_one(stored(server.storage, options=server.options))
            silent.set()
    finally:
        silent.set()
    assert problem(found) == ("unreachable", "the claim-check storage does not answer")


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"])
def test_wrong_credentials_are_not_retried_and_not_shown(code):
    body = f"<Error><Code>{code}</Code><Message>the key {OPTIONS['secret']} is wrong</Message></Error>".encode()
    with answering(lambda _number, _path: (403, {}, body)) as server:
        found = read_one(stored(server.storage, options=server.options))
    assert problem(found)[0] == "claim_check_storage"
    assert len(server.requests) == 1
    assert OPTIONS["secret"] not in str(found)


def test_few_objects_are_read_at_once_and_fewer_large_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MEMORY_BYTES", 1000)
    running, most = 0, []
    lock = threading.Lock()
    plain = module._Storage._get

    def counted(self, name):
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        try:
            threading.Event().wait(0.005)
            return plain(self, name)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(module._Storage, "_get", counted)
    for number in range(20):
        (tmp_path / f"{number}.json").write_bytes(b"x" * (10 if number < 10 else 900))
    store = stored(tmp_path, max_object_bytes=2_000)
    list(store.read([f"{number}.json" for number in range(10)]))
    assert 1 < max(most) <= module.PARALLEL
    list(store.read(["10.json"]))
    most.clear()
    assert len(list(store.read([f"{number}.json" for number in range(10, 20)]))) == 10
    assert max(most) == 1


def test_a_caller_may_stop_early(tmp_path):
    tmp_path.joinpath("a.json").write_bytes(b"a")
    contents = stored(tmp_path).read(["a.json"] * 100)
    assert next(contents) == b"a"
    contents.close()


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(ConfigError) as raised:
        stored("s3://bucket/large").check()
    assert 'pip install "cdc-applier[s3]"' in raised.value.remedy
    assert raised.value.facts["key"] == "source.claim_check.storage"


def test_an_unknown_scheme_and_a_wrong_option_are_errors_of_the_configuration():
    with pytest.raises(ConfigError, match="unknown scheme: 'carrier'"):
        stored("carrier://pigeon/large").check()
    with pytest.raises(ConfigError) as raised:
        stored("s3://bucket/large", options={"no_such_option": 1, "config_kwargs": 7}).check()
    assert raised.value.facts["key"] == "source.claim_check.options"
