"""A dump that cannot be loaded as it is, and a configuration that begins with one. No server: all is refused before."""

from pathlib import Path

import pytest

from applier.model.errors import RetryableSinkError
from tests.rig.dump_directory import TS, dumpling

INIT = "init --servers h:9092 --topic feed --sink sqlite:///x.db --no-check"
SERVER = "mysql+pymysql://root@127.0.0.1:1/"


REACHED = "the sink is opened"


@pytest.fixture
def dump(newcomer, monkeypatch):
    """A dump. The load ends where it opens the sink: all that these remedies are about is examined by then."""

    def open_sink(_settings):
        raise RetryableSinkError(REACHED)

    monkeypatch.setattr("applier.dump.into_sink.open_sink", open_sink)
    newcomer.configure(sink__url=SERVER)
    return dumpling(Path("dump"))


def goes_on(newcomer, command):
    said = newcomer.applier(command)
    assert (said.code, REACHED in said.stderr) == (4, True), said


def test_init_is_told_where_the_dump_begins(newcomer, dump):
    newcomer.fails(f"{INIT} --config a.toml --from-dump dump --start-ts {TS + 1}", 2)
    newcomer.succeeds(f"{INIT} --config a.toml --from-dump dump")
    (dump / "metadata").unlink()
    newcomer.fails(f"{INIT} --config b.toml --from-dump dump", 2)
    newcomer.succeeds(f"{INIT} --config b.toml --start-ts {TS}")
    assert all(str(TS) in Path(name).read_text() for name in ("a.toml", "b.toml"))


def test_init_is_given_a_path_that_can_be_written(newcomer):
    newcomer.fails(f"{INIT} --config no/such/applier.toml", 2)
    newcomer.succeeds(f"{INIT} --config applier.toml")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("load nowhere", "load dump"),
        ("load empty", "load dump"),
        ('load dump --time-zone "+08\'00"', "load dump --time-zone +08:00"),
    ],
    ids=["no directory", "an empty directory", "time zone"],
)
def test_a_dump_is_loaded_after_the_remedy_of_its_options(wrong, right, newcomer, dump):
    Path("empty").mkdir()
    newcomer.fails(wrong, 2)
    goes_on(newcomer, right)


def test_metadata_that_cannot_be_read_gets_its_permissions(newcomer, dump, monkeypatch):
    # The user of the tests may be root, who may read anything.
    read = Path.read_text

    def read_text(path, *arguments, **options):
        if path.stat().st_mode & 0o400:
            return read(path, *arguments, **options)
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", read_text)
    (dump / "metadata").chmod(0)
    newcomer.fails("load dump", 2, "Permission denied")
    (dump / "metadata").chmod(0o600)
    goes_on(newcomer, "load dump")
