// A line chart over time (uPlot), in the colours of the page, with its numbers as text for users who cannot see it.
import { html, useEffect, useRef } from "./ui.js";
import script from "../vendor/uplot.js";
import { t } from "./i18n.js";
import { count } from "./format.js";
import { theme } from "./theme.js";

/** @type {any} The minified script has no types. */
const uPlot = script;
const HEIGHT = 150;

/** `times` in Unix seconds; `series`: `{label, values, colour}`, the colour a CSS variable's name. */
export function Chart({ title, total, times, series }) {
  const container = useRef(null);
  const dark = theme.value;
  useEffect(() => {
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const options = {
      width: container.current.clientWidth || 300,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false },
      scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map((at, n) => timeLabel(at, n > 0 ? ticks[n - 1] : null)) }, { ...axis, size: 48, values: (_, ticks) => ticks.map((n) => compact(n)) }],
      series: [{}, ...series.map((one) => ({ label: one.label, stroke: colour(one.colour), fill: `${colour(one.colour)}22`, width: 2, points: { show: times.length < 3 } }))],
    };
    const plot = new uPlot(options, [times, ...series.map((one) => one.values)], container.current);
    const resized = new ResizeObserver(() => plot.setSize({ width: container.current.clientWidth, height: HEIGHT }));
    resized.observe(container.current);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [times, series, dark]);
  const last = series.map((one) => `${one.label}: ${count(one.values.at(-1) ?? 0)}`).join(", ");
  return html`<figure class="chart">
    <figcaption><span>${title}</span><strong>${total}</strong></figcaption>
    <div ref=${container} role="img" aria-label=${`${title}: ${total}. ${t("Last value")}: ${last}`}></div>
  </figure>`;
}

/** The hour, or the date at the beginning of a day. */
function timeLabel(/** @type {number} */ at, /** @type {number | null} */ before) {
  const date = new Date(at * 1000);
  const day = (seconds) => new Date(seconds * 1000).toDateString();
  if (before === null || day(before) !== day(at)) return `${date.getMonth() + 1}/${date.getDate()}`;
  return `${String(date.getHours()).padStart(2, "0")}:00`;
}

function compact(/** @type {number} */ n) {
  return n >= 1e6 ? `${n / 1e6}M` : n >= 1e4 ? `${n / 1e3}k` : String(n);
}
