// The timeline: what each column had shown at what time, and what was done to it when. An SVG, without a library.
//
// Knows nothing of where the numbers come from. Geometry is pure; `draw` puts it on the page.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 34, right: 16, top: 26, bottom: 22 };
const LEAST_MS = 20_000; // the axis does not start to move at once
const LEAST_NUMBER = 20;
const TICK_MS = [5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000];
const MOST_TICKS = 8;
const LABEL_PX = 80;

/** How wide a step of the axis is for a chart that long. */
export function tickMs(spanMs) {
  return TICK_MS.find((step) => spanMs / step <= MOST_TICKS) ?? TICK_MS.at(-1);
}

/** The SVG path through the points, as steps: a number stays until the next one. */
export function stepPath(points, toX, toY, endMs) {
  const steps = points.map(({ at, number }, index) => {
    const [x, y] = [round(toX(at)), round(toY(number))];
    return index === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  return `${steps.join("")}H${round(toX(endMs))}`;
}

/** Scales of a chart of that size for columns that started at 0. */
export function scales(width, height, columns, endMs) {
  const spanMs = Math.max(LEAST_MS, endMs);
  const top = Math.max(LEAST_NUMBER, ...columns.flatMap(({ points }) => points.map(({ number }) => number)));
  return {
    spanMs,
    top,
    toX: (at) => MARGIN.left + (at / spanMs) * (width - MARGIN.left - MARGIN.right),
    toY: (number) => height - MARGIN.bottom - (number / top) * (height - MARGIN.top - MARGIN.bottom),
  };
}

/**
 * Draw the chart anew. `columns` are `{ name, points }` with times since the start; `marks` are `{ label, at, until }`:
 * a mark without `until` was a moment, and one whose `until` is Infinity still lasts.
 */
export function draw(svg, columns, marks, endMs) {
  const { clientWidth: width, clientHeight: height } = svg;
  if (!width) return;
  const { spanMs, top, toX, toY } = scales(width, height, columns, endMs);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(
    ...grid(width, height, { spanMs, top, toX, toY }),
    ...marks.flatMap((mark, index) => markShapes(mark, index, { endMs, toX, width, height })),
    ...columns.map(({ name, points, endMs: own }) =>
      shape("path", { class: `line ${name}`, d: stepPath(points, toX, toY, own ?? endMs) })),
  );
}

function grid(width, height, { spanMs, top, toX, toY }) {
  const step = tickMs(spanMs);
  const shapes = [0, Math.round(top / 2), top].flatMap((number) => [
    shape("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: toY(number), y2: toY(number) }),
    text(number, { class: "axis end", x: MARGIN.left - 6, y: toY(number) + 4 }),
  ]);
  for (let at = 0; at <= spanMs; at += step) {
    shapes.push(text(`${at / 1000} s`, { class: "axis middle", x: toX(at), y: height - 6 }));
  }
  return shapes;
}

function markShapes({ label, at, until }, index, { endMs, toX, width, height }) {
  const [left, right] = [toX(at), toX(Math.min(until ?? at, endMs))];
  const y = MARGIN.top - 14 + (index % 2) * 11; // neighbours' labels do not cover each other
  const [y1, y2] = [MARGIN.top, height - MARGIN.bottom];
  const place = left < width - LABEL_PX ? { class: "mark", x: left + 3, y } : { class: "mark end", x: left - 3, y };
  const shapes = [shape("line", { class: "mark", x1: left, x2: left, y1, y2 }), text(label, place)];
  if (until === undefined) return shapes;
  return [shape("rect", { class: "mark", x: left, y: y1, width: Math.max(0, right - left), height: y2 - y1 }), ...shapes];
}

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function text(words, attributes) {
  const element = shape("text", attributes);
  element.textContent = words;
  return element;
}

function round(number) {
  return Math.round(number * 10) / 10;
}
