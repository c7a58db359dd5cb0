"""Under spark-submit its master holds, not the configuration's: a file of this machine is refused before anything is opened."""

import pytest

import applier.run.assembly
from applier.config import load_config
from applier.model.errors import ConfigError
from applier.run.assembly import engine_settings
from applier.run.catchup import CatchupOptions, catch_up
from applier.telemetry.observer import SilentObserver

CLUSTER = "spark://host:7077"


def config_of(url, kafka=(), **spark):
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["feed"], "kafka": dict(kafka)}
    return load_config(None, {"source": source, "sink": {"url": url}, "spark": spark}, environment={})


@pytest.mark.parametrize("master", [CLUSTER, "yarn", "k8s://https://host"])
def test_a_file_is_refused_under_a_master_that_is_not_local(tmp_path, monkeypatch, master):
    monkeypatch.setattr(applier.run.assembly, "submitted_master", lambda: master)
    monkeypatch.setattr(applier.run.assembly, "kit_of", None)
    monkeypatch.setattr(applier.run.assembly, "open_sink", None)
    with pytest.raises(ConfigError, match="needs a local Spark master") as caught:
        catch_up(config_of(f"sqlite:///{tmp_path}/replica.db"), CatchupOptions(), SilentObserver())
    assert caught.value.facts == {"master": master}
    assert "--master" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_the_submitted_master_goes_over_the_configurations(tmp_path):
    config = config_of("mysql+pymysql://u@h/", master="local[3]").submitted_to(CLUSTER)
    assert (config.spark.master, engine_settings(config).buckets) == (CLUSTER, 16)
    assert config_of(f"sqlite:///{tmp_path}/r.db", master="local[3]").submitted_to("local[2]").spark.buckets == 2


@pytest.mark.parametrize("master", [None, "local[*]"])
def test_a_local_master_continues_to_open_kafka(tmp_path, monkeypatch, master):
    monkeypatch.setattr(applier.run.assembly, "submitted_master", lambda: master)
    config = config_of(f"sqlite:///{tmp_path}/replica.db", kafka={"no.such.thing": "x"})
    with pytest.raises(ConfigError, match="librdkafka has no property"):
        catch_up(config, CatchupOptions(), SilentObserver())


def test_the_master_is_set_in_one_place_only():
    with pytest.raises(ConfigError, match=r"spark.conf cannot set 'spark.master'") as caught:
        config_of("mysql+pymysql://u@h/", conf={"spark.master": CLUSTER})
    assert "--master" in caught.value.remedy
