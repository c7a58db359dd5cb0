"""The commands of a printed remedy use the configuration file of the command that failed."""

import pytest

from applier.cli.output import remedy_line


@pytest.mark.parametrize(
    "arguments", [["catchup", "--config", "a b.toml"], ["catchup", "--config=a b.toml"], ["catchup", "-c", "a b.toml"]]
)
def test_commands_name_the_file_that_was_given(arguments):
    remedy = "Run `applier ddl skip --ts 7` or `applier migrate`"
    assert remedy_line(remedy, arguments) == "Run `applier ddl skip --config 'a b.toml' --ts 7` or `applier migrate --config 'a b.toml'`."


def test_commands_stand_as_they_are_with_the_usual_file():
    assert remedy_line("Run `applier migrate`", ["catchup"]) == "Run `applier migrate`."


def test_a_page_of_the_documentation_needs_no_configuration():
    assert remedy_line("Read `applier docs start_over`", ["run", "-c", "a.toml"]) == "Read `applier docs start_over`."
