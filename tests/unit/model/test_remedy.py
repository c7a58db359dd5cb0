"""Remedies have identifiers, and their commands name the place of their error."""

import pickle

import pytest

from applier.model.errors import INSPECT_RECORD, NO_REMEDY, SKIP_RECORD, NeedsOperator, Remedy


def filled_in(text, facts):
    return Remedy("test.remedy", text).filled_in(facts)


def test_commands_name_the_place_of_the_error():
    facts = {"topic": "feed", "partition": 2, "offset": 17}
    assert filled_in(f"Run `{SKIP_RECORD}`", facts) == "Run `applier skip --stream feed/2 --offset 17`"


def test_names_are_quoted_as_a_shell_needs_it():
    facts = {"commit_ts": 7, "table": "shop.my orders"}
    assert filled_in("`applier ddl skip --ts … --table …`", facts) == "`applier ddl skip --ts 7 --table 'shop.my orders'`"


def test_what_the_facts_do_not_know_is_left_to_the_operator():
    assert filled_in("`applier ddl skip --ts … --table …`", {"commit_ts": 7}) == "`applier ddl skip --ts 7 --table …`"


def test_facts_that_come_later_are_named_too():
    error = NeedsOperator("m", remedy=Remedy("test.remedy", "`applier ddl skip --ts …`"))
    error.facts["commit_ts"] = 7
    assert error.remedy == pickle.loads(pickle.dumps(error)).remedy == "`applier ddl skip --ts 7`"  # noqa: S301


def test_a_command_about_a_transaction_of_a_binlog_names_its_gtid_or_its_place():
    facts = {"gtid": "0-1-42", "position": "binlog.000003:157"}
    assert filled_in("`applier skip --gtid …`, `applier skip --position …`", facts) == (
        "`applier skip --gtid 0-1-42`, `applier skip --position binlog.000003:157`"
    )


def test_a_command_about_a_record_names_a_place_of_the_binlog_where_the_source_is_one():
    facts = {"topic": "binlog", "partition": 0, "offset": 9, "position": "binlog.000003:157"}
    facts["commit_position"] = "binlog.000003:200 (2026-11-23 12:00:00.000Z)"
    assert filled_in(f"`{INSPECT_RECORD}`, `{SKIP_RECORD}`, `applier ddl skip --ts …`", facts) == (
        "`applier inspect --from binlog.000003:157 --limit 1`, `applier skip --position binlog.000003:157`, "
        "`applier ddl skip --ts binlog.000003:200`"
    )


@pytest.mark.parametrize(("name", "option"), [("shop", "shop."), ("", "."), ("shop.orders", "shop.orders")])
def test_a_schema_and_what_has_no_name_are_named_as_the_command_takes_them(name, option):
    assert filled_in("`applier ddl skip --table …`", {"table": name}) == f"`applier ddl skip --table {option}`"


def test_a_remedy_is_its_text_and_keeps_its_identifier():
    found = Remedy("test.skip", "Skip it with `applier ddl skip --ts …`")
    assert found == "Skip it with `applier ddl skip --ts …`"
    assert pickle.loads(pickle.dumps(found)).id == found.filled_in({"commit_ts": 7}).id == "test.skip"  # noqa: S301
    error = pickle.loads(pickle.dumps(NeedsOperator("m", remedy=found, commit_ts=7)))  # noqa: S301
    assert (error.remedy, error.remedy.id) == ("Skip it with `applier ddl skip --ts 7`", "test.skip")


def test_two_remedies_are_two_sentences_with_both_identifiers():
    first, question, second = Remedy("a.one", "Do one"), Remedy("a.asked", "Did you mean it?"), Remedy("a.two", "Or two")
    assert (first.then(second), first.then(second).id) == ("Do one. Or two", "a.one+a.two")
    assert question.then(second) == "Did you mean it? Or two"
    assert NO_REMEDY.then(second).id == "a.two"


def test_an_error_without_a_remedy_has_an_empty_one():
    assert (NeedsOperator("m").remedy, str(NeedsOperator("m"))) == ("", "m")
