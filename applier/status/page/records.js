"use strict";
// The history of DDLs and the quarantine, as the sink has them.

const DDL_LEVEL = { done: "ok", skipped: "off", intent: "busy", background: "busy" };
const DDL_WORD = { done: "done", skipped: "skipped", intent: "running", background: "in background" };
const HELD_LEVEL = { held: "warn", retried: "ok", dropped: "off", skipped: "off" };
const FIRST_DDLS = 8;
let showsAllDdls = false;
let lastDdls = null;

function showDdls(answer, now) {
  lastDdls = answer;
  const list = answer.ddls;
  const shown = showsAllDdls ? list : list.slice(0, FIRST_DDLS);
  byId("ddls").replaceChildren(...(list.length ? shown.map((ddl) => ddlItem(ddl, now)) : [element("li", { class: "empty" }, "No DDL has come yet.")]));
  write(byId("ddls-caption"), list.length >= answer.at_most ? `the newest ${answer.at_most}; all: applier ddl list` : list.length ? several(list.length, "statement") : "");
  const button = byId("all-ddls");
  button.hidden = list.length <= FIRST_DDLS;
  write(button, showsAllDdls ? `Show only the newest ${FIRST_DDLS}` : `Show all ${list.length}`);
  button.setAttribute("aria-expanded", String(showsAllDdls));
}

function ddlItem(ddl, now) {
  const name = [ddl.schema, ddl.table].filter(Boolean).join(".");
  const took = ddl.began_at && ddl.ended_at ? (new Date(ddl.ended_at) - new Date(ddl.began_at)) / 1000 : null;
  const open = ddl.state === "intent" || ddl.state === "background";
  const refused = open && ddl.error;
  const head = element("div", { class: "record-head" },
    element("span", { class: "tag", "data-level": refused ? "bad" : DDL_LEVEL[ddl.state] ?? "off" }, refused ? "refused" : DDL_WORD[ddl.state] ?? ddl.state),
    element("b", {}, name || ddl.type),
    element("span", { class: "quiet last" }, `${moment(ddl.began_at, now)}${took === null ? "" : `, took ${duration(took)}`}`));
  return element("li", {}, head, element("code", {}, ddl.query), ddl.error ? element("p", { class: "problem" }, ddl.error) : "");
}

function showQuarantine(answer, now) {
  const { entries, held } = answer;
  byId("quarantine").replaceChildren(...(entries.length
    ? entries.map((entry) => quarantineItem(entry, now))
    : [element("li", { class: "empty" }, "Empty: every event was applied.")]));
  write(byId("quarantine-caption"), held
    ? `${several(held, "event")} wait${held === 1 ? "s" : ""} for you: applier quarantine show, retry or drop`
    : entries.length ? "none waits for a decision" : "");
}

function quarantineItem(entry, now) {
  const table = entry.schema ? `${entry.schema}.${entry.table}` : "an unreadable record";
  const head = element("div", { class: "record-head" },
    element("span", { class: "tag", "data-level": HELD_LEVEL[entry.state] ?? "off" }, entry.state === "held" ? "waits" : entry.state),
    element("b", {}, table), element("span", {}, entry.position),
    element("span", { class: "quiet last" }, `found ${moment(entry.found_at, now)}`));
  return element("li", {}, head, element("p", { class: "problem" }, entry.error));
}

const RECENT_S = 86400;

// How the run before this one ended, if that was an error of the last day.
function showLastEnd(answer, now) {
  const { end } = answer, notice = byId("last-end");
  notice.hidden = !end || end.exit_code === 0 || secondsSince(end.ended_at, now) > RECENT_S;
  if (notice.hidden) return;
  write(notice, `Before this run, applier ${end.command} ended at ${moment(end.ended_at, now)} with exit code ${end.exit_code}: ${end.message}`);
}

function showProblem(id, problem) {
  if (!byId(`${id}-caption`)) return;
  write(byId(`${id}-caption`), `Cannot be read now: ${problem}`);
  if (!byId(id).childElementCount) byId(id).replaceChildren(element("li", { class: "empty" }, "Shown as soon as the database answers."));
}
