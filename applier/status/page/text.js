"use strict";
// Words and numbers for people. Whatever comes from the daemon enters the page as text, never as HTML.

const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// A node that does not change is left alone: a screen reader would read it again, and a selection would be lost.
function write(node, text) {
  if (node.textContent === text) return;
  const only = node.childNodes.length === 1 && node.firstChild.nodeType === Node.TEXT_NODE;
  if (only) node.firstChild.data = text;
  else node.textContent = text;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "unknown";
  const s = Math.max(0, seconds);
  if (s > 0 && s < 0.0995) return `${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 99.5) return `${Math.round(s)} s`;
  const minutes = Math.floor(s / 60), hours = Math.floor(s / 3600), days = Math.floor(s / 86400);
  if (s < 3600) return `${minutes} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  if (s < 86400) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${days} d ${hours % 24} h`;
}

// "in about": nobody plans by the second.
function about(seconds) {
  if (seconds < 90) return `${Math.max(10, Math.round(seconds / 10) * 10)} s`;
  if (seconds < 3570) return `${Math.round(seconds / 60)} min`;
  return duration(Math.round(seconds / 60) * 60);
}

const GROUPED = new Intl.NumberFormat("en-US");
const count = (number) => (number === null || number === undefined ? "unknown" : GROUPED.format(Math.round(number)));

function several(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}

function rate(number) {
  if (number === null || number === undefined) return "unknown";
  return number > 0 && number < 10 ? number.toFixed(1) : count(number);
}

const pad = (number) => String(number).padStart(2, "0");

function clock(moment) {
  const at = new Date(moment);
  return `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}`;
}

const day = (moment) => new Date(moment).toISOString().slice(0, 10);

// The date only where it is another day than that of `now`.
function moment(at, now) {
  return day(at) === day(now) ? clock(at) : `${day(at)} ${clock(at)}`;
}

const secondsSince = (at, now) => (now - new Date(at).getTime()) / 1000;
