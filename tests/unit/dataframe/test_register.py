"""Registering the format: what it needs is checked before Spark is asked for anything."""

import sys
from types import SimpleNamespace

import pytest

from applier.dataframe import BinlogChangelogSource, ChangelogSource, register
from applier.model.errors import ConfigError


def session(python):
    registered = []
    context = SimpleNamespace() if python is None else SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=python))
    return SimpleNamespace(**vars(context), dataSource=SimpleNamespace(register=registered.append)), registered


@pytest.mark.parametrize("python", [sys.executable, None])
def test_the_format_is_registered_where_the_workers_have_this_python_or_a_server_has_its_own(python):
    spark, registered = session(python)
    register(spark)
    assert registered == [ChangelogSource, BinlogChangelogSource]


def test_another_python_of_the_workers_is_named_with_the_variable_that_is_set():
    spark, registered = session("/nowhere/python")
    with pytest.raises(ConfigError) as caught:
        register(spark)
    assert (caught.value.facts["python"], registered) == ("/nowhere/python", [])
    named = caught.value.remedy.partition("PYSPARK_PYTHON=")[2].split()[0]
    spark, registered = session(named)
    register(spark)
    assert registered == [ChangelogSource, BinlogChangelogSource]


def test_a_missing_pyarrow_is_named_with_the_extra(monkeypatch):
    monkeypatch.setattr("applier.dataframe.find_spec", lambda _: None)
    spark, registered = session(sys.executable)
    with pytest.raises(ConfigError, match=r"applier\[dataframe\]"):
        register(spark)
    assert registered == []
