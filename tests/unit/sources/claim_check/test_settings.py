"""Where claim-check objects are, as operators and TiCDC write it."""

import pickle

import pytest

from applier.sources.claim_check.settings import BadStorage, ClaimCheckSettings, address_of


@pytest.mark.parametrize(
    ("storage", "protocol", "root", "container"),
    [
        ("s3://bucket/a/b/", "s3", "bucket/a/b", "bucket"),
        ("gcs://bucket/a", "gs", "bucket/a", "bucket"),
        ("gs://bucket", "gs", "bucket", "bucket"),
        ("azblob://box/a", "abfs", "box/a", "box"),
        ("azure://box/a", "abfs", "box/a", "box"),
        ("file:///var/large%20rows/", "file", "/var/large rows", "/var/large rows"),
        ("nfs:///mnt/large", "file", "/mnt/large", "/mnt/large"),
        ("/mnt/large/", "file", "/mnt/large", "/mnt/large"),
        ("sftp://host/large", "sftp", "host/large", "host"),
    ],
)
def test_a_storage_is_named_as_ticdc_names_it(storage, protocol, root, container):
    place = address_of(storage)
    assert (place.protocol, place.root, place.container) == (protocol, root, container)


@pytest.mark.parametrize(
    ("storage", "problem"),
    [
        ("large", "is not an absolute path"),
        ("file://large", "is not an absolute path"),
        ("s3://", "names no bucket"),
        ("s3://bucket/a?access-key=AKIA&secret-access-key=hush", "holds more than a location"),
        ("s3://key:hush@bucket/a", "holds more than a location"),
        ("simplecache::s3://bucket/a", "chains several filesystems ('::')"),
    ],
)
def test_anything_else_is_refused_without_quoting_it(storage, problem):
    with pytest.raises(BadStorage) as raised:
        address_of(storage)
    assert raised.value.problem == problem
    assert "hush" not in f"{raised.value} {raised.value.remedy}"


def test_settings_cross_to_executors_and_show_no_secret():
    settings = ClaimCheckSettings(storage="s3://b", options={"secret": "hush-hush", "client_kwargs": {"aws_session_token": "hash-hash"}})
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - our own bytes
    assert "hush" not in repr(settings)
    assert settings.masked("no hush-hush and hash-hash in eu-west-1") == "no *** and *** in eu-west-1"
