"""Zones in which an hour comes twice are warned of."""

import pytest

from applier.config import load_config
from applier.config.kafka_source import ambiguous_years
from applier.run.assembly import warn_of_zone
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import SilentObserver


@pytest.mark.parametrize(
    ("zone", "years"),
    [
        ("UTC", None),
        ("+08:00", None),
        ("Asia/Kolkata", None),
        ("Etc/GMT+5", None),
        ("Asia/Shanghai", (1986, 1991)),
        ("Europe/Berlin", (1980, 2037)),
        ("America/New_York", (1970, 2037)),
        ("Australia/Lord_Howe", (1982, 2037)),
    ],
)
def test_the_years_in_which_an_hour_comes_twice_are_known(zone, years):
    assert ambiguous_years(zone) == years


class Noted(SilentObserver):
    def __init__(self):
        self.notes = []

    def note(self, message, /, **facts):
        self.notes.append((message, facts))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_run_warns_at_its_start_of_a_zone_with_daylight_saving(zone):
    environment = {"APPLIER_SOURCE__BOOTSTRAP_SERVERS": "k:1", "APPLIER_SOURCE__TOPICS": "t", "APPLIER_SINK__URL": "sqlite:///r.db"}
    noted = Noted()
    warn_of_zone(load_config(None, {"source": {"time_zone": zone}}, environment=environment), Monitor(noted))
    if zone == "UTC":
        assert noted.notes == []
        return
    [(message, facts)] = noted.notes
    assert message == "ambiguous_time_zone"
    assert facts["time_zone"] == zone
    assert "--tz=UTC" in facts["remedy"]
