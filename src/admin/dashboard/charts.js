// Bar charts as SVG. Each chart has a name and a summary, and each bar a tooltip with its value.

import { draw } from "./dom.js";

const HEIGHT = 230;
const ROW_HEIGHT = 30;
const MARGIN = { top: 12, right: 8, bottom: 26, left: 56 };

/**
 * Vertical bars in order; `bars` are `{label, value, title}`, and `show` formats a value. The
 * chart is redrawn when the width of its container changes.
 */
export function columns(container, bars, options) {
  attach(container, (width) => columnsAt(width, bars, options));
}

/** Horizontal bars, each with its name above it. */
export function rows(container, bars, options) {
  attach(container, (width) => rowsAt(width, bars, options));
}

const renderers = new WeakMap();
const resizeObserver = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) redraw(target, contentRect.width);
});

function attach(container, render) {
  renderers.set(container, render);
  resizeObserver.observe(container);
  redraw(container, container.clientWidth);
}

function redraw(container, width) {
  const render = renderers.get(container);
  if (render && width > 0) container.replaceChildren(render(Math.round(width)));
}

function svg(width, height, { name, summary }, ...parts) {
  return draw(
    "svg",
    { role: "img", width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": `${name}. ${summary}` },
    draw("title", {}, name),
    draw("desc", {}, summary),
    ...parts,
  );
}

function columnsAt(width, bars, options) {
  const right = width - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const scale = tickValues(Math.max(0, ...bars.map((bar) => bar.value)), options.smallest);
  const y = (value) => bottom - ((bottom - MARGIN.top) * value) / scale.at(-1);
  const slot = (right - MARGIN.left) / bars.length;
  const parts = scale.flatMap((value) => gridLine(y(value), right, options.show(value)));
  bars.forEach((bar, at) => {
    const x = MARGIN.left + slot * at;
    parts.push(column(bar, x, slot, y));
  });
  parts.push(...labels(bars, slot, right));
  return svg(width, HEIGHT, options, ...parts);
}

function column(bar, x, slot, y) {
  const gap = slot > 6 ? Math.min(slot * 0.25, 10) : slot * 0.1;
  const height = bar.value > 0 ? Math.max(1.5, y(0) - y(bar.value)) : 0;
  return draw(
    "g",
    { class: "bar-group" },
    draw("title", {}, bar.title),
    // The whole slot reacts to the pointer, so that small bars are easy to hit.
    draw("rect", { class: "slot", x, y: MARGIN.top, width: slot, height: y(0) - MARGIN.top }),
    draw("rect", {
      class: "bar",
      x: x + gap / 2,
      y: y(0) - height,
      width: Math.max(0.5, slot - gap),
      height,
      rx: Math.min(2, slot / 4),
    }),
  );
}

function gridLine(y, right, text) {
  return [
    draw("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y }),
    draw("text", { class: "tick", x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, text),
  ];
}

/** Returns as many labels as fit, starting from the newest. */
function labels(bars, slot, right) {
  const every = Math.max(1, Math.ceil(64 / slot));
  const shown = bars.map((bar, at) => ({ bar, at }));
  return shown
    .filter(({ at }) => (bars.length - 1 - at) % every === 0)
    .map(({ bar, at }) => {
      const middle = MARGIN.left + slot * (at + 0.5);
      const tight = middle > right - 24;
      const x = tight ? right : middle;
      const anchor = tight ? "end" : "middle";
      return draw("text", { class: "tick", x, y: HEIGHT - 8, "text-anchor": anchor }, bar.label);
    })
    .filter((label) => Number(label.getAttribute("x")) > MARGIN.left + 12);
}

function rowsAt(width, bars, options) {
  const max = Math.max(0, ...bars.map((bar) => bar.value)) || 1;
  const maxLabel = Math.max(20, Math.floor(width / 7.2) - 10);
  const parts = bars.map((bar, at) => {
    const y = at * (ROW_HEIGHT + 8);
    const length = bar.value > 0 ? Math.max(2, (width * bar.value) / max) : 0;
    return draw(
      "g",
      { class: "bar-group" },
      draw("title", {}, bar.title),
      draw("text", { class: "name", x: 0, y: y + 13 }, truncate(bar.label, maxLabel)),
      draw("text", { class: "tick", x: width, y: y + 13, "text-anchor": "end" }, options.show(bar.value)),
      draw("rect", { class: "track", x: 0, y: y + 20, width, height: 8, rx: 4 }),
      draw("rect", { class: "bar", x: 0, y: y + 20, width: length, height: 8, rx: Math.min(4, length / 2) }),
    );
  });
  return svg(width, Math.max(1, bars.length) * (ROW_HEIGHT + 8), options, ...parts);
}

function truncate(text, max) {
  const letters = [...text];
  return letters.length > max ? `${letters.slice(0, max - 1).join("")}…` : text;
}

/** Returns round values from zero to at least the highest. */
function tickValues(highest, smallest) {
  const top = Math.max(highest, smallest);
  const power = 10 ** Math.floor(Math.log10(top / 4));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size * 4 >= top);
  const whole = smallest >= 1 ? Math.max(1, Math.ceil(step)) : step;
  const last = Math.ceil(top / whole - 1e-9);
  return Array.from({ length: last + 1 }, (_, at) => at * whole);
}
