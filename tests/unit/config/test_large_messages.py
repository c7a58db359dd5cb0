"""Where rows that were too large for Kafka are found: claim-check storage, and upstream's TiDB. Secrets are never shown."""

import pytest

from applier.config import load_config
from applier.database.session import Tls, TlsMode
from applier.model.errors import ConfigError
from applier.run.assembly import decoder_for
from applier.sources.claim_check.settings import MAX_OBJECT_BYTES, ClaimCheckSettings

SECRET = "hunter-2-€"  # noqa: S105 - a mark that is looked for
ENOUGH = {
    "APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:9092",
    "APPLIER_SOURCE__TOPICS": "t",
    "APPLIER_SINK__URL": "mysql+pymysql://u@h/",
}
S3 = {"storage": "s3://bucket/large"}
TIDB = "mysql+pymysql://reader@tidb:4000/"


def load(environment=None, **source):
    return load_config(None, {"source": source}, environment=ENOUGH | (environment or {}))


def refusal(environment=None, **source) -> str:
    with pytest.raises(ConfigError) as caught:
        load(environment, **source)
    assert caught.value.remedy
    assert SECRET not in str(caught.value)
    return caught.value.message


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n", encoding="utf-8")
    return str(path)


def test_without_either_large_rows_are_refused():
    config = load()
    assert (config.source.claim_check.settings(), config.source.upstream_settings()) == (None, None)
    assert decoder_for(config).row_lookup is None


def test_a_storage_with_its_options():
    options = {"key": "k", "secret": SECRET, "endpoint_url": "http://s3", "anon": False, "client_kwargs": {"region_name": "eu"}}
    config = load(claim_check=S3 | {"options": options, "max_object_size": "1MiB"})
    assert config.source.claim_check.settings() == ClaimCheckSettings(
        storage="s3://bucket/large", options=options, max_object_bytes=1 << 20
    )
    assert load(claim_check=S3).source.claim_check.settings().max_object_bytes == MAX_OBJECT_BYTES
    assert SECRET not in f"{config!r} {config} {config.source.claim_check.settings()!r} {decoder_for(config)!r}"


def test_secrets_of_a_storage_come_from_files_and_from_the_environment(file):
    wanted = {"secret": SECRET, "key": "k"}
    assert load(claim_check=S3 | {"options": {"secret.file": file, "key": "k"}}).source.claim_check.options == wanted
    environment = {
        "APPLIER_SOURCE__CLAIM_CHECK__STORAGE": "s3://bucket/large",
        "APPLIER_SOURCE__CLAIM_CHECK__OPTIONS__SECRET": SECRET,
        "APPLIER_SOURCE__CLAIM_CHECK__OPTIONS__KEY": "k",
    }
    assert load(environment).source.claim_check.options == wanted
    assert load({**environment, "APPLIER_SOURCE__CLAIM_CHECK__OPTIONS": '{"anon": true}'}).source.claim_check.options == wanted | {
        "anon": True
    }


@pytest.mark.parametrize(
    ("claim_check", "message"),
    [
        ({"storage": "large"}, "source.claim_check.storage is not an absolute path"),
        ({"storage": f"s3://b/p?secret-access-key={SECRET}"}, "source.claim_check.storage holds more than a location"),
        ({"options": {"secret": SECRET}}, "source.claim_check sets options without storage"),
        (S3 | {"options": {"secret": SECRET, "skip_instance_cache": True}}, "source.claim_check.options cannot set 'skip_instance_cache'"),
        (S3 | {"options": {"secret": SECRET, "secret.file": "/x"}}, "source.claim_check.options sets both 'secret' and 'secret.file'"),
        (S3 | {"max_object_size": "1"}, "source.claim_check.max_object_size is too small: 1 bytes"),
        (S3 | {"stroage": "x"}, "source.claim_check.stroage is not a configuration key"),
    ],
)
def test_wrong_settings_of_a_storage_are_refused(claim_check, message):
    assert message in refusal(claim_check=claim_check)


def test_upstream_with_its_password(file):
    wanted = "mysql+pymysql://reader:hunter-2-%E2%82%AC@tidb:4000/"
    for config in (
        load(upstream=TIDB, upstream_password=SECRET),
        load(upstream=TIDB, upstream_password_file=file),
        load({"APPLIER_SOURCE__UPSTREAM": TIDB, "APPLIER_SOURCE__UPSTREAM_PASSWORD": SECRET}),
        load({"APPLIER_SOURCE__UPSTREAM_PASSWORD_FILE": file}, upstream=TIDB),
    ):
        settings = config.source.upstream_settings()
        assert settings.url == wanted
        assert SECRET not in f"{config!r} {settings!r} {decoder_for(config)!r}"
        assert decoder_for(config).row_lookup.settings == settings


def test_upstream_is_read_with_the_zone_of_the_wire_and_its_own_tls():
    settings = load(upstream=TIDB, time_zone="+08:00", upstream_tls_ca=__file__).source.upstream_settings()
    assert (settings.time_zone, settings.tls) == ("+08:00", Tls(mode=TlsMode.VERIFY_IDENTITY, ca=__file__))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"upstream": "sqlite:////x.db"}, "source.upstream is not a server of the MySQL family"),
        ({"upstream": f"mysql+pymysql://u:{SECRET}@h/?charset=latin1"}, "source.upstream has an unsupported option: 'charset'"),
        ({"upstream": TIDB, "upstream_password": SECRET, "upstream_password_file": "/x"}, "names a file that cannot be read"),
        (
            {"upstream": TIDB, "upstream_tls_mode": "required", "upstream_tls_ca": __file__},
            'sets upstream_tls_ca, which upstream_tls_mode = "required" ignores',
        ),
    ],
)
def test_wrong_settings_of_upstream_are_refused(source, message):
    assert message in refusal(**source)


def test_a_password_is_given_once(file):
    assert "sets both upstream_password and" in refusal(upstream=TIDB, upstream_password=SECRET, upstream_password_file=file)
