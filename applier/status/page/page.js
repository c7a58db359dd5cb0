"use strict";
// Asks the daemon now and then, and shows what it says. When it does not answer any more, the page keeps what it said last.

const ASK_MS = 1000, HIDDEN_MS = 15000, TIMEOUT_MS = 5000, RECORDS_MS = 15000, HISTORY_MS = 5000;
const SILENT_MS = 3000; // one answer that is late says nothing
const ICONS = {
  ok: "M20 6 9 17l-5-5", busy: "M21 12a9 9 0 1 1-3-6.7M21 3v5h-5",
  warn: "M12 9v4m0 4h.01M10.3 3.9 1.8 18a2 2 0 0 0 1.7 3h17a2 2 0 0 0 1.7-3L13.7 3.9a2 2 0 0 0-3.4 0z",
  bad: "M12 7v6m0 4h.01M7.9 2h8.2L22 7.9v8.2L16.1 22H7.9L2 16.1V7.9z", off: "M12 2v10m6.4-5.4a9 9 0 1 1-12.8 0",
};

const page = {
  status: null, history: {}, said: null, announced: "", answeredAt: null, silentSince: null, begun: Date.now(), skew: 0, ddlSeen: null, asked: {}, heldBefore: null, ddlsBefore: null,
  lag: null, rows: null,
};

// The daemon's clock: the lag counts by it, and this machine's may be wrong.
const daemonNow = () => Date.now() + page.skew;

async function ask(path, options = {}) {
  const answer = await fetch(path, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(TIMEOUT_MS), ...options });
  return { answer, value: await answer.json() };
}

async function askStatus() {
  try {
    const { answer, value } = await ask("status");
    if (!answer.ok) throw new Error(value.error);
    page.status = value;
    page.answeredAt = Date.now();
    page.silentSince = null;
    page.skew = skewOf(value, answer);
    if (value.current_ddl !== page.ddlSeen?.text) page.ddlSeen = value.current_ddl ? { text: value.current_ddl, since: daemonNow() } : null;
  } catch {
    if (Date.now() - (page.answeredAt ?? page.begun) >= SILENT_MS) page.silentSince = page.answeredAt ?? page.begun;
  }
}

function skewOf(status, answer) {
  const exact = status.checkpoint_time && status.lag_s > 0 ? Date.parse(status.checkpoint_time) + status.lag_s * 1000 : Date.parse(answer.headers.get("Date"));
  return Number.isNaN(exact) ? 0 : exact - Date.now();
}

// The records are asked for again at once when the status says that they have changed.
async function askRecords(force) {
  const now = Date.now(), { status } = page;
  const due = (name, every) => force || now - (page.asked[name] ?? 0) >= every;
  if (due("history", HISTORY_MS)) {
    page.asked.history = now;
    try { page.history = (await ask("history")).value; showCharts(); show(); } catch { /* the status says that nobody answers */ }
  }
  const moved = status && (status.ddls + status.skipped_ddls !== page.ddlsBefore || status.current_ddl !== page.ddlText);
  if (moved || due("ddls", RECORDS_MS)) {
    Object.assign(page, { ddlsBefore: status && status.ddls + status.skipped_ddls, ddlText: status?.current_ddl });
    page.asked.ddls = now;
    await showAnswer("ddls", showDdls);
  }
  if (due("last-end", RECORDS_MS * 4)) {
    page.asked["last-end"] = now;
    await showAnswer("last-end", showLastEnd);
  }
  if ((status && status.quarantined !== page.heldBefore) || due("quarantine", RECORDS_MS)) {
    page.heldBefore = status?.quarantined;
    page.asked.quarantine = now;
    await showAnswer("quarantine", showQuarantine);
  }
}

async function showAnswer(name, show) {
  try {
    const { answer, value } = await ask(name, { signal: AbortSignal.timeout(TIMEOUT_MS * 3) });
    if (answer.ok) show(value, daemonNow());
    else showProblem(name, value.error);
  } catch { showProblem(name, "the daemon does not answer"); }
}

function show() {
  const { status, history } = page, rows = history.rows_per_s ?? [];
  const seen = {
    now: daemonNow(), silentSince: page.silentSince === null ? null : page.silentSince + page.skew,
    last: page.said, ddlSince: page.ddlSeen?.since, secondsLeft: secondsLeft(history), rowsPerS: rows.length ? rows[rows.length - 1] : null,
  };
  if (status || page.silentSince !== null) {
    const found = verdict(status ?? {}, seen);
    if (page.silentSince === null) page.said = found;
    showNow(found);
  }
  if (!status || page.silentSince !== null) return;
  write(byId("replica"), status.replica);
  write(byId("about"), `applier ${status.version}, process ${status.process}, ${status.epoch === null ? "not the owner yet" : `epoch ${status.epoch}`}, up for ${duration(status.uptime_s)}`);
  showTiles(status, seen);
  showStreams(status, seen.now);
  write(byId("heard"), "");
}

function showNow(found) {
  const box = byId("now");
  box.dataset.level = found.level;
  byId("now-icon").setAttribute("d", ICONS[found.level]);
  write(byId("now-title"), found.title);
  write(byId("now-detail"), found.detail);
  const text = byId("now-text"), list = byId("now-facts"), advice = byId("now-advice");
  text.hidden = !found.text;
  write(text, found.text ?? "");
  list.hidden = found.facts.length === 0;
  const key = JSON.stringify(found.facts);
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...found.facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
  }
  advice.hidden = !found.advice;
  if (advice.dataset.text !== found.advice) {
    advice.dataset.text = found.advice;
    // Commands stand between backticks.
    advice.replaceChildren(...(found.advice ?? "").split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part)));
  }
  // Announced when it changes in kind, not with each second that it lasts.
  if (page.announced !== found.announce) { page.announced = found.announce; write(byId("announcer"), found.announce ?? found.title); }
  document.title = `${found.title} · ${page.status?.replica ?? "applier"}`;
  showIcon(found.level);
  showCommand();
}

function showIcon(level) {
  const icon = byId("icon");
  if (icon.dataset.level === level) return;
  icon.dataset.level = level;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><circle cx="12" cy="12" r="11" fill="${ink(`--${level}`)}"/></svg>`;
  icon.href = `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

// Of a binlog the position too: it is what commands take.
function checkpointText(status, seen) {
  const place = status.checkpoint && status.checkpoint.includes(":") ? ` at ${status.checkpoint}` : "";
  return status.checkpoint_time ? `checkpoint ${moment(status.checkpoint_time, seen.now)}${place}` : place ? `checkpoint${place}` : "no checkpoint yet";
}

function showTiles(status, seen) {
  const held = status.quarantined;
  const tiles = [
    ["Lag", duration(status.lag_s), checkpointText(status, seen), status.lag_s > 300 ? "warn" : ""],
    ["Rows per second", rate(seen.rowsPerS), `${count(status.rows)} since the start`, ""],
    ["Transactions", count(status.transactions), `${several(status.ddls, "DDL")}${status.skipped_ddls ? `, ${count(status.skipped_ddls)} skipped,` : ""} since the start`, ""],
    ["Now", status.phase, status.phase_since ? `for ${duration(secondsSince(status.phase_since, seen.now))}` : "", ""],
    ["In quarantine", held === null ? "unknown" : count(held), held ? "wait for a decision" : "nothing waits", held ? "warn" : ""],
  ];
  const list = byId("tiles");
  if (list.childElementCount !== tiles.length) list.replaceChildren(...tiles.map(([name]) => element("div", {}, element("dt", {}, name), element("dd"), element("dd"))));
  tiles.forEach(([, value, more, level], index) => {
    const [, first, second] = list.children[index].children;
    list.children[index].dataset.level = level;
    list.children[index].toggleAttribute("data-long", value.length > 12);
    write(first, value);
    write(second, more);
  });
}

function showCharts() {
  page.lag.show(page.history, daemonNow());
  page.rows.show(page.history, daemonNow());
}

// Pause and resume, where the daemon takes commands.

const isPaused = () => Boolean(page.status?.paused_since);

function showCommand() {
  byId("commands").hidden = document.body.dataset.commands !== "yes" || page.silentSince !== null || !page.status;
  write(byId("command"), isPaused() ? "Resume…" : "Pause…");
}

function openDialog() {
  const word = isPaused() ? "Resume" : "Pause";
  write(byId("ask-title"), `${word} the replica?`);
  write(byId("ask-text"), isPaused()
    ? "The run reads its tables again and continues where it stopped."
    : "The run finishes what it writes, keeps the replica and reads nothing until it is resumed.");
  write(byId("ask-yes"), word);
  write(byId("ask-problem"), "");
  byId("ask").dataset.path = `api/${word.toLowerCase()}`;
  byId("ask").showModal();
}

async function sendCommand(event) {
  event.preventDefault();
  const dialog = byId("ask");
  try {
    const { answer, value } = await ask(dialog.dataset.path, { method: "POST", headers: { Authorization: `Bearer ${byId("token").value}` } });
    if (!answer.ok) throw new Error(`${value.error}. ${value.remedy ?? ""}`);
    byId("token").value = "";
    dialog.close();
  } catch (error) {
    write(byId("ask-problem"), error.message);
    byId("token").focus();
  }
}

async function follow() {
  await askStatus();
  show();
  await askRecords(false);
  setTimeout(follow, document.hidden ? HIDDEN_MS : ASK_MS);
}

function begin() {
  byId("lag-chart").dataset.name = "Lag";
  byId("rows-chart").dataset.name = "Rows per second";
  page.lag = new Chart(byId("lag-chart"), byId("lag-caption"), { label: "lag_s", colour: "--busy", steps: LAG_STEPS, short: shortDuration, full: duration, least: 5 });
  page.rows = new Chart(byId("rows-chart"), byId("rows-caption"), { label: "rows_per_s", colour: "--ok", short: shortCount, full: (value) => `${rate(value)} rows/s`, least: 10 });
  byId("all-streams").addEventListener("click", () => { showsAll = !showsAll; show(); });
  byId("all-ddls").addEventListener("click", () => { showsAllDdls = !showsAllDdls; if (lastDdls) showDdls(lastDdls, daemonNow()); });
  byId("command").addEventListener("click", openDialog);
  byId("ask-no").addEventListener("click", () => byId("ask").close());
  byId("ask-form").addEventListener("submit", sendCommand);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) askStatus().then(show); });
  follow();
}

begin();
