"""The page in a real browser: what a person sees in each state, on a phone, in the dark, by keyboard, and what axe finds."""

import re
import time
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from applier.telemetry.failing import Failing
from applier.telemetry.run_state import Paused
from tests.rig.browser import PHONE, opened, violations
from tests.rig.page_state import ALTER, TOKEN, idle, iso, page_of, stalled

STATES = {
    "idle": ("ok", "Up to date"),
    "catching_up": ("busy", "Catching up: 45 min"),
    "ddl_running": ("busy", "DDL running for"),
    "stalled": ("warn", "Waiting for tidb-shop/3"),
    "stopped": ("bad", "Stopped with an error"),
}
ONE_SECOND_POLLS = 15_000


def title(tab):
    return tab.locator("#now-title")


@pytest.mark.parametrize("name", STATES)
def test_each_state_is_said_first_and_is_accessible_in_every_form(browser, name):
    level, words = STATES[name]
    for form in ({}, {"size": PHONE}, {"dark": True}):
        with page_of(name) as shown, opened(browser, shown.address, **form) as tab:
            expect(title(tab)).to_contain_text(words)
            assert tab.locator("#now").get_attribute("data-level") == level
            expect(tab.locator("#announcer")).not_to_be_empty()
            assert tab.title().endswith("orders-eu")
            assert violations(tab) == []
            assert (tab.problems, tab.foreign) == ([], [])


def test_a_phone_needs_no_scrolling_to_the_side(browser):
    with page_of("stalled") as shown, opened(browser, shown.address, size=PHONE) as tab:
        assert tab.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert tab.locator("#streams-scroll").evaluate("(node) => node.scrollWidth <= node.clientWidth")
        expect(tab.get_by_text("holds back", exact=True)).to_be_visible()


def test_a_running_ddl_is_shown_with_its_text_and_its_time(browser):
    with page_of("ddl_running") as shown, opened(browser, shown.address) as tab:
        expect(tab.locator("#now-text")).to_have_text(ALTER)
        expect(title(tab)).to_contain_text(re.compile(r"for 3 min \d"))
        expect(tab.locator("#ddls li").first).to_contain_text("running")


def test_a_run_that_ends_says_why_and_the_open_page_keeps_its_last_words(browser):
    with page_of() as shown, opened(browser, shown.address) as tab:
        shown.app.end(RuntimeError("a defect"))
        expect(title(tab)).to_have_text("Stopped with an error", timeout=ONE_SECOND_POLLS)
        shown.server.close()
        expect(title(tab)).to_have_text("The daemon does not answer", timeout=ONE_SECOND_POLLS)
        expect(tab.locator("#now-detail")).to_contain_text("No answer since")
        expect(tab.locator("#now-text")).to_contain_text("It said last: Stopped with an error")
        expect(tab.locator("#replica")).to_have_text("orders-eu")


def test_two_hundred_partitions_are_one_picture_the_latest_ten_and_all_on_demand(browser):
    with page_of() as shown:
        shown.make = lambda: stalled(200)
        with opened(browser, shown.address) as tab:
            expect(tab.get_by_role("img", name="200 partitions: 1 more than a minute behind the others")).to_be_visible()
            expect(tab.locator("#stream-rows tr")).to_have_count(10)
            expect(tab.locator("#stream-rows tr").first).to_contain_text("tidb-shop/3")
            tab.get_by_role("button", name="Show all 200 partitions").click()
            expect(tab.locator("#stream-rows tr")).to_have_count(200)
            expect(tab.locator("#stream-rows tr").nth(199)).to_contain_text("tidb-shop/199")
            assert violations(tab) == []


def test_everything_is_reached_by_keyboard_and_the_focus_is_seen(browser):
    with page_of(token=TOKEN) as shown, opened(browser, shown.address) as tab:
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("link", name="Skip to the streams")).to_be_focused()
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("button", name="Pause…")).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.get_by_label("Token")).to_be_focused()
        assert violations(tab) == []
        tab.keyboard.type("the wrong token")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("alert")).to_contain_text("the token is missing or wrong")
        tab.get_by_label("Token").fill(TOKEN)
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("dialog")).to_be_hidden()
        assert shown.records.asked == [("pause", "http from 127.0.0.1")]


def test_without_a_token_the_page_offers_no_commands(browser):
    with page_of() as shown, opened(browser, shown.address) as tab:
        expect(tab.get_by_role("button", name="Pause…")).to_be_hidden()


def test_names_from_upstream_are_text_and_never_html(browser):
    evil = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    with page_of("ddl_running") as shown:
        shown.records.ddl = shown.records.ddl | {"table": evil, "query": evil, "error": evil}
        make = shown.make
        shown.make = lambda: replace(make(), current_ddl=evil, replica=evil)
        with opened(browser, shown.address) as tab:
            expect(tab.locator("#now-text")).to_have_text(evil)
            expect(tab.locator("#replica")).to_have_text(evil)
            expect(tab.locator("#ddls li").first).to_contain_text(evil)
            assert tab.locator("img, main script").count() == 0
            assert (tab.problems, tab.foreign) == ([], [])


def test_the_page_works_while_the_sink_is_away(browser):
    with page_of() as shown:
        shown.records.is_away = True
        with opened(browser, shown.address) as tab:
            expect(title(tab)).to_have_text("Up to date")
            expect(tab.locator("#ddls-caption")).to_contain_text("Cannot be read now: connecting failed")
            assert violations(tab) == []


def test_a_run_that_fails_says_since_when_why_and_until_when_it_tries(browser):
    since = time.time() - 93
    failing = Failing(
        since_s=since, error="the database does not answer", error_class="RetryableSinkError", attempt=5, gives_up_at_s=since + 600
    )
    with page_of() as shown:
        shown.make = lambda: replace(idle(), failing=failing, is_ready=False)
        with opened(browser, shown.address) as tab:
            expect(title(tab)).to_contain_text("Failing for 9")
            expect(tab.locator("#now-text")).to_have_text("the database does not answer")
            expect(tab.locator("#now-facts")).to_contain_text("Attempt5")
            expect(tab.locator("#now-facts")).to_contain_text("in 8 min")
            assert violations(tab) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"is_fenced": True}, "Another run has taken the replica over"), ({"progress_s": time.monotonic() - 700}, "No progress")],
)
def test_a_run_that_lost_its_replica_and_one_that_hangs_are_told_from_one_that_works(browser, changes, words):
    with page_of() as shown:
        shown.make = lambda: replace(idle(), **changes)
        with opened(browser, shown.address) as tab:
            expect(title(tab)).to_have_text(words)
            assert tab.locator("#now").get_attribute("data-level") == "bad"


def test_a_paused_run_says_who_paused_it_and_can_be_resumed(browser):
    with page_of(token=TOKEN) as shown:
        shown.make = lambda: replace(idle(), paused=Paused(since_s=time.time() - 60, said_by="ann@host"))
        with opened(browser, shown.address) as tab:
            expect(tab.locator("#now-facts")).to_contain_text("ann@host")
            expect(tab.get_by_role("button", name="Resume…")).to_be_visible()
            assert violations(tab) == []


def test_partitions_without_a_resolved_event_have_no_place_on_the_axis_and_no_watermark(browser):
    def unresolved():
        state = idle()
        each = tuple(replace(view, status=replace(view.status, resolved_ts=0)) for view in state.streams.each)
        return replace(state, watermark=0, checkpoint_ts=0, is_ready=False, streams=replace(state.streams, each=each))

    with page_of() as shown:
        shown.make = unresolved
        with opened(browser, shown.address) as tab:
            expect(tab.locator("#streams-caption")).to_have_text("6 partitions: none with a resolved event yet")
            expect(tab.locator("#stream-rows tr").first).to_contain_text("not resolved")
            expect(tab.locator("#stream-rows .late")).to_have_count(0)


def test_how_the_run_before_this_one_ended_is_said_after_a_restart(browser):
    with page_of() as shown:
        shown.records.end = {
            "command": "run",
            "exit_code": 75,
            "message": "the database does not answer",
            "ended_at": iso(time.time() - 300),
        }
        with opened(browser, shown.address) as tab:
            expect(tab.locator("#last-end")).to_contain_text("with exit code 75: the database does not answer")
            assert violations(tab) == []


def test_a_run_that_has_applied_nothing_yet_says_what_it_waits_for(browser):
    with page_of() as shown:
        shown.make = lambda: replace(idle(), epoch=None, checkpoint_ts=0, is_ready=False, phase="waiting for the replica lock")
        with opened(browser, shown.address) as tab:
            expect(title(tab)).to_have_text("Waiting for the replica lock")
