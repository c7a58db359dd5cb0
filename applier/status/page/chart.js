"use strict";
// The two charts of the last hour, drawn by uPlot.

const HOUR_S = 3600;
const LEAST_S = 300;
const LAG_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function shortDuration(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 60) return `${+seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${+(seconds / 60).toFixed(1)} min`;
  if (seconds < 86400) return `${+(seconds / 3600).toFixed(1)} h`;
  return `${+(seconds / 86400).toFixed(1)} d`;
}

function shortCount(number) {
  if (number >= 1e6) return `${+(number / 1e6).toFixed(1)} M`;
  return number >= 1e3 ? `${+(number / 1e3).toFixed(1)} k` : `${+number.toFixed(1)}`;
}

class Chart {
  constructor(place, caption, { label, colour, steps, short, full, least }) {
    Object.assign(this, { place, caption, label, colour, steps, short, full, least });
    this.data = [[], []];
    this.plot = null;
    new ResizeObserver(() => this.resize()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  options() {
    const colour = ink(this.colour), axis = { stroke: ink("--quiet"), font: `12px ${ink("--font")}`, grid: { stroke: ink("--grid"), width: 1 }, ticks: { show: false } };
    return {
      width: Math.max(200, this.place.clientWidth), height: this.place.clientHeight, padding: [8, 20, 0, 0],
      tzDate: (unix) => uPlot.tzDate(new Date(unix * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
      scales: {
        x: { time: true, range: () => [this.begin, this.end] },
        y: { range: (_, __, most) => [0, Math.max(this.least, (most ?? 0) * 1.1)] },
      },
      axes: [
        { ...axis, size: 22, space: 70, values: (_, all) => all.map((unix) => clock(unix * 1000).slice(0, 5)) },
        { ...axis, size: 62, space: 34, ...(this.steps && { incrs: this.steps }), values: (_, all) => all.map(this.short) },
      ],
      series: [{}, { label: this.label, stroke: colour, width: 1.6, fill: `${colour}26`, points: { show: false } }],
      hooks: { setCursor: [(plot) => this.point(plot.cursor.idx)] },
    };
  }

  show(history, now) {
    this.end = now / 1000;
    // A run that has just begun has no hour yet: its minutes fill the chart.
    this.begin = Math.max(this.end - HOUR_S, Math.min(history.unix_s?.[0] ?? this.end, this.end - LEAST_S));
    this.data = [history.unix_s ?? [], history[this.label] ?? []];
    if (this.plot === null) this.rebuild();
    else this.plot.setData(this.data);
    this.describe();
  }

  rebuild() {
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data, this.place);
  }

  resize() {
    if (this.plot && this.place.clientWidth !== this.plot.width) this.plot.setSize({ width: this.place.clientWidth, height: this.place.clientHeight });
  }

  describe() {
    const [times, values] = this.data;
    let most = -1;
    values.forEach((value, index) => { if (value !== null && (most < 0 || value > values[most])) most = index; });
    const text = most < 0 ? "no figures yet" : values[most] === 0 ? "none" : `most ${this.full(values[most])} at ${clock(times[most] * 1000).slice(0, 5)}`;
    this.summary = text;
    if (!this.plot?.cursor.idx) write(this.caption, text);
    this.place.setAttribute("aria-label", `${this.place.dataset.name} over the last hour: ${text}`);
  }

  point(index) {
    const [times, values] = this.data;
    const pointed = index !== null && index !== undefined && values[index] !== null && values[index] !== undefined;
    write(this.caption, pointed ? `${clock(times[index] * 1000)}: ${this.full(values[index])}` : this.summary ?? "");
  }
}
