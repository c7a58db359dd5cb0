"use strict";
// Every stream's resolved time as a bar that ends where the stream is, on an axis that ends now. The line through all bars is the watermark.

const SPANS_S = [10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000];
const MANY = 24; // more of them are first shown as one picture, with the latest ten below
const SHOWN_OF_MANY = 10;
const LATE_S = 60;
const SVG = "http://www.w3.org/2000/svg";

const streamRows = new Map();
let showsAll = false;

function axisSpan(lags) {
  const most = Math.max(0, ...lags) * 1.05;
  return SPANS_S.find((span) => span >= most) ?? most;
}

function showStreams(status, now) {
  const streams = Object.entries(status.streams).map(([name, stream]) => ({ name, ...stream }));
  const known = streams.filter((stream) => stream.lag_s !== null);
  const span = axisSpan(known.map((stream) => stream.lag_s));
  // Without a resolved time of each partition there is no watermark.
  const watermarkLag = streams.length > 0 && known.length === streams.length ? Math.max(...known.map((stream) => stream.lag_s)) : null;
  const at = (lag) => (lag === null ? 0 : Math.max(0, 1 - lag / span));
  const line = watermarkLag === null ? -1 : at(watermarkLag);
  const many = streams.length > MANY;
  const first = Math.min(...known.map((stream) => stream.lag_s));
  for (const stream of streams) stream.isLate = stream.lag_s === null ? known.length > 0 : stream.lag_s > first * 1.25 + LATE_S || (streams.length === 1 && stream.lag_s > LATE_S);
  streams.sort(many && !showsAll ? byLag : byName);
  const shown = many && !showsAll ? streams.slice(0, SHOWN_OF_MANY) : streams;

  describeStreams(streams, watermarkLag, many);
  showAxis(span);
  showOverview(many ? [...streams].sort(byName) : [], at, line, span);
  const body = byId("stream-rows");
  body.style.setProperty("--w", line);
  const rows = shown.map((stream) => streamRow(stream, status, now, at));
  if (rows.length !== body.children.length || rows.some((row, index) => body.children[index] !== row)) body.replaceChildren(...rows);
  byId("streams-scroll").classList.toggle("tall", many && showsAll);
}

const byLag = (one, other) => (other.lag_s ?? Infinity) - (one.lag_s ?? Infinity) || byName(one, other);
const byName = (one, other) => one.name.localeCompare(other.name, "en", { numeric: true });

// Late: more than a minute behind the partition that is furthest. While a replica catches up, all of them are old, and none is late.
function summary(streams) {
  const number = several(streams.length, "partition"), late = streams.filter((stream) => stream.isLate && stream.lag_s !== null).length;
  const waiting = streams.filter((stream) => stream.lag_s === null).length;
  if (waiting) return `${number}: ${waiting === streams.length ? "none" : count(streams.length - waiting)} with a resolved event yet`;
  const lags = streams.map((stream) => stream.lag_s), most = Math.max(...lags), least = Math.min(...lags);
  if (late) return `${number}: ${count(late)} more than a minute behind the others`;
  return most <= LATE_S ? `${number}: all within a minute of now` : duration(least) === duration(most) ? `${number}: ${duration(most)} behind` : `${number}: ${duration(least)} to ${duration(most)} behind`;
}

function describeStreams(streams, watermarkLag, many) {
  write(byId("streams-caption"), streams.length ? `${summary(streams)}${watermarkLag === null ? "" : `. Watermark (line): ${duration(watermarkLag)} ago`}` : "none is known yet");
  const button = byId("all-streams");
  button.hidden = !many;
  write(button, showsAll ? `Show only the ${SHOWN_OF_MANY} furthest behind` : `Show all ${count(streams.length)} partitions`);
  button.setAttribute("aria-expanded", String(showsAll));
}

function showAxis(span) {
  const axis = byId("axis"), text = `${shortDuration(span)} ago|${shortDuration(span / 2)} ago|now`;
  if (axis.dataset.text === text) return;
  axis.dataset.text = text;
  axis.replaceChildren(...text.split("|").map((label) => element("span", {}, label)));
}

function streamRow(stream, status, now, at) {
  let row = streamRows.get(stream.name);
  if (!row) {
    const name = element("th", { scope: "row" }), reach = element("span", { class: "reach" });
    const track = element("div", { class: "track", "aria-hidden": "true" }, reach, element("span", { class: "mark" }));
    const lag = element("td", { class: "number lag" }), time = element("td", { class: "number wide" }), left = element("td", { class: "number wide" });
    row = element("tr", {}, name, element("td", {}, track), lag, time, left);
    row.parts = { name, reach, lag, time, left };
    streamRows.set(stream.name, row);
  }
  const { name, reach, lag, time, left } = row.parts;
  const holds = status.holding_stream === stream.name && stream.isLate;
  const key = `${stream.name}|${holds}`;
  if (name.dataset.key !== key) {
    name.dataset.key = key;
    name.title = stream.name;
    name.replaceChildren(stream.name, holds ? element("span", { class: "tag", "data-level": "warn" }, "holds back") : "");
  }
  row.classList.toggle("late", stream.isLate);
  reach.style.setProperty("--at", at(stream.lag_s));
  write(lag, stream.lag_s === null ? "not resolved" : duration(stream.lag_s));
  write(time, stream.resolved_time ? moment(stream.resolved_time, now) : "");
  if (status.gtid_set) name.title = `GTID set ${status.gtid_set}`;
  // Numbers of a binlog's places count nothing.
  write(left, stream.end_position ? `${stream.position} of ${stream.end_position}` : stream.end_offset === null ? "" : count(Math.max(0, stream.end_offset - (stream.next_offset ?? 0))));
  return row;
}

function showOverview(streams, at, line, span) {
  const place = byId("overview");
  place.hidden = streams.length === 0;
  if (place.hidden) return;
  let picture = place.querySelector("svg");
  if (!picture || picture.childElementCount !== streams.length + 1) {
    picture = document.createElementNS(SVG, "svg");
    picture.setAttribute("viewBox", `0 0 ${streams.length} 100`);
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    for (let index = 0; index < streams.length; index += 1) picture.append(document.createElementNS(SVG, "rect"));
    picture.append(document.createElementNS(SVG, "line"));
    place.replaceChildren(picture, element("p", { class: "quiet" }, element("span"), element("span")));
  }
  picture.setAttribute("aria-label", summary(streams));
  streams.forEach((stream, index) => {
    const bar = picture.children[index], height = at(stream.lag_s) * 100;
    const place_ = { x: index + 0.1, y: 100 - height, width: 0.8, height: Math.max(1, height) };
    for (const [key, value] of Object.entries(place_)) bar.setAttribute(key, value.toFixed(2));
    bar.classList.toggle("is-late", stream.isLate);
  });
  const level = (100 - line * 100).toFixed(2);
  for (const [key, value] of Object.entries({ x1: 0, x2: streams.length, y1: level, y2: level })) picture.lastElementChild.setAttribute(key, value);
  const [left, right] = place.querySelectorAll("p span");
  write(left, `Each column is one partition, in the order of their names. Top: now. Bottom: ${shortDuration(span)} ago.`);
  write(right, "");
}
