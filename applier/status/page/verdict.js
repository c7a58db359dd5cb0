"use strict";
// What a person must know first: how the replica is, in one word, one sentence, and what to do. It reads values and touches no page.

const BEHIND_S = 60; // a replica that is older than this catches up; a changefeed resolves every second or so
const MAX_ADVANCE_S = 6 * 3600; // beyond it an estimate says nothing

const STARTING = {
  "starting": "It prepares to read.",
  "starting Spark": "Spark takes some seconds to start.",
  "opening the sink": "It connects to the database.",
  "waiting for the replica lock": "Another run may own the replica, or has just ended.",
  "reading positions": "It reads from the sink where to continue.",
};

function verdict(status, seen) {
  const { now } = seen;
  const kinds = [unreachable, stopped, fenced, failing, paused, runningDdl, hanging, stalled, starting, behind];
  for (const kind of kinds) {
    const found = kind(status, seen, now);
    if (found) return found;
  }
  return well(status);
}

function unreachable(status, seen, now) {
  if (seen.silentSince === null) return null;
  const last = status && seen.last;
  return {
    level: "bad", title: "The daemon does not answer", announce: "The daemon does not answer",
    detail: last
      ? `No answer since ${moment(seen.silentSince, now)} (${duration((now - seen.silentSince) / 1000)}). Everything below is from that time.`
      : `No answer for ${duration((now - seen.silentSince) / 1000)}.`,
    text: last ? `It said last: ${last.title}. ${last.detail}${last.text ? `\n${last.text}` : ""}` : "",
    facts: last ? last.facts : [],
    advice: `${last && seen.last.level === "bad" && seen.last.advice ? `${sentence(seen.last.advice)} ` : ""}Is the process running? \`applier status\` asks the database itself, and says how the last run ended.`,
  };
}

function stopped(status, seen, now) {
  const { end } = status;
  if (!end && status.phase !== "stopped") return null;
  if (!end?.error) {
    return { level: "off", title: "Stopped", announce: "Stopped", detail: "The run ends, and saves where to continue.", facts: [], advice: "Start it again with `applier run`." };
  }
  return {
    level: "bad", title: "Stopped with an error", announce: `Stopped with an error: ${end.error}`,
    detail: "The run has ended. Nothing is applied until it is started again; what was applied is safe.",
    text: end.error,
    facts: facts(["Exit code", end.exit_code], ["Error", end.error_class]),
    advice: end.remedy || "`applier status` shows the whole error and what to do.",
  };
}

function fenced(status) {
  if (!status.is_fenced) return null;
  return {
    level: "bad", title: "Another run has taken the replica over", announce: "Another run has taken the replica over",
    detail: "This run writes nothing more, and ends.", facts: facts(["Process", status.process], ["Epoch", status.epoch]),
    advice: "`applier status` names the run that owns the replica now.",
  };
}

function failing(status, seen, now) {
  if (!status.failing_since) return null;
  const lasts = duration(secondsSince(status.failing_since, now));
  const gives = status.gives_up_at;
  const next = status.next_attempt_at && -secondsSince(status.next_attempt_at, now);
  return {
    level: "bad", title: `Failing for ${lasts}`, announce: `Failing since ${clock(status.failing_since)}: ${status.error}`,
    detail: "The run tries again by itself. Nothing is lost, and nothing is applied meanwhile.",
    text: status.error || "",
    facts: facts(
      ["Since", moment(status.failing_since, now)],
      ["Attempt", next > 0 ? `${status.attempt}, the next one in ${duration(next)}` : status.attempt],
      ["Gives up", gives && `${moment(gives, now)}, in ${duration(Math.max(0, -secondsSince(gives, now)))}`],
    ),
    advice: gives
      ? "If the database or Kafka comes back before that time, the run continues. After it the run ends with exit code 75."
      : "If the database or Kafka comes back, the run continues.",
  };
}

function paused(status, seen, now) {
  if (!status.paused_since) return null;
  return {
    level: "warn", title: `Paused for ${duration(secondsSince(status.paused_since, now))}`, announce: "Paused",
    detail: "The run owns the replica and reads nothing. The lag grows until somebody resumes it.",
    facts: facts(["Since", moment(status.paused_since, now)], ["By", status.paused_by]),
    advice: "Resume it with `applier resume`, long before the topics delete what is not read yet.",
  };
}

function runningDdl(status, seen, now) {
  if (!status.current_ddl) return null;
  const since = status.ddl_since || seen.ddlSince;
  return {
    level: "busy", title: `DDL running for ${duration(secondsSince(since, now))}`, announce: "A DDL runs",
    detail: "Later rows wait until it ends. A large table takes as long as it takes: there is no time limit.",
    text: status.current_ddl,
    facts: facts(["Since", moment(since, now)], ["More DDLs wait", status.pending_ddls || null]),
    advice: "In the database, SHOW PROCESSLIST shows whether it works or waits for a lock.",
  };
}

function hanging(status, seen, now) {
  if (status.is_alive !== false) return null;
  return {
    level: "bad", title: "No progress", announce: "No progress",
    detail: `The run has made no step for longer than [http] unhealthy_after_s. It was ${status.phase}.`,
    facts: facts(["Since", status.phase_since && moment(status.phase_since, now)]),
    advice: "The log says what it waits for (`no_progress`). A supervisor that asks /healthz starts it again.",
  };
}

function stalled(status, seen, now) {
  const stall = status.stall;
  if (!stall) return null;
  const others = Object.keys(status.streams).length - 1;
  return {
    level: "warn", title: `Waiting for ${stall.stream}`, announce: `Stalled: waiting for ${stall.stream}`,
    detail: `This partition has brought no resolved event for ${duration(stall.silent_s)}. ${
      others > 0 ? `It holds back the watermark of all ${several(others + 1, "partition")}.` : "Nothing is applied without one."}`,
    facts: facts(["Watermark", status.watermark_time && moment(status.watermark_time, now)], ["Lag", duration(status.lag_s)]),
    advice: "Is the changefeed running? Ask TiCDC: `cdc cli changefeed query`. A partition that no dispatcher uses is excluded by `source.partitions`.",
  };
}

function starting(status) {
  if (status.epoch !== null && status.checkpoint_time) return null;
  const word = status.phase === "starting" ? "Starting" : status.phase[0].toUpperCase() + status.phase.slice(1);
  return { level: "busy", title: word, announce: word, detail: STARTING[status.phase] || "It has applied nothing yet.", facts: [], advice: "" };
}

function behind(status, seen) {
  const late = status.lag_s !== null && status.lag_s > BEHIND_S;
  if (status.is_ready && !late) return null;
  if (!late && status.lag_s < 10) return null;
  const left = seen.secondsLeft;
  return {
    level: "busy", title: `Catching up: ${duration(status.lag_s)} behind`, announce: "Catching up",
    detail: left === null
      ? "It reads what the topics hold and applies it."
      : left > MAX_ADVANCE_S || left < 0 ? "The lag does not shrink: as much arrives as is applied." : `About ${about(left)} left at this speed.`,
    facts: facts(["Now", status.phase], ["Rows per second", seen.rowsPerS === null ? null : rate(seen.rowsPerS)]),
    advice: "",
  };
}

function well(status) {
  const idle = status.phase === "idle" || status.phase === "waiting";
  return {
    level: "ok", title: "Up to date", announce: "Up to date",
    detail: `The replica is ${duration(status.lag_s)} old. ${idle ? "Kafka holds nothing new." : `Now: ${status.phase}.`}`,
    facts: [], advice: "",
  };
}

const sentence = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);

function facts(...pairs) {
  return pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
}

// Seconds until the lag is gone, by how fast it shrank in the last two minutes; null while that is not known.
function secondsLeft(history) {
  const lags = history.lag_s ?? [], times = history.unix_s ?? [], last = lags.length - 1;
  if (last < 3 || lags[last] === null) return null;
  let first = last;
  while (first > 0 && lags[first - 1] !== null && times[last] - times[first - 1] <= 120) first -= 1;
  const passed = times[last] - times[first];
  if (passed < 10) return null;
  const shrinks = (lags[first] - lags[last]) / passed;
  return shrinks <= 0 ? -1 : lags[last] / shrinks;
}
