// Scripts of the pages: search, copying of code, a table of contents that is open in wide windows.
"use strict";

/** An element with attributes and children; strings become text, never markup. */
function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/* ---- copying ------------------------------------------------------------------------------ */

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Browsers have no clipboard object on pages without TLS.
  const area = element("textarea", { "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("not copied");
}

function addCopyButtons() {
  for (const pre of document.querySelectorAll("article pre")) {
    const button = element("button", { type: "button", "aria-label": "Copy the code" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await copyText(pre.textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    const box = element("div", { class: "code" });
    pre.replaceWith(box);
    box.append(pre, button);
  }
}

/* ---- search ------------------------------------------------------------------------------- */

const MAX_RESULTS = 12;
const MAX_RESULTS_OF_PAGE = 3;
/** Weight of a word by the text that contains it. */
const WEIGHTS = { page: 12, heading: 8, text: 1 };

/** The words of a text in lower case: `seedream-5.0` has three. */
const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];

/** How often each word is in a text. */
function countWords(text) {
  const counts = new Map();
  for (const word of words(text)) counts.set(word, (counts.get(word) || 0) + 1);
  return counts;
}

/** The parts of all pages with their words counted. */
function prepare(pages) {
  return pages.flatMap((page) => {
    const title = countWords(`${page.title} ${page.address.replace("/docs", "")}`);
    return page.parts.map(([anchor, heading, text], at) => (
      { page, anchor, heading, text, isFirst: at === 0, counts: { page: title, heading: countWords(heading), text: countWords(text) } }));
  });
}

/** How well one word of the query fits one text: a complete word more than the beginning of one. */
function scoreWord(counts, word) {
  const complete = counts.get(word);
  if (complete) return 1 + Math.log2(complete) / 4;
  let best = 0;
  for (const [found, times] of counts) if (found.startsWith(word)) best = Math.max(best, (0.5 + Math.log2(times) / 8) * (word.length / found.length + 1) / 2);
  return best;
}

/** 0 if a word of the query is nowhere in the part, its heading or its page's title. */
function scorePart(part, query) {
  let sum = 0;
  let inPage = 0;
  for (const word of query) {
    const page = scoreWord(part.counts.page, word);
    const score = page * WEIGHTS.page + scoreWord(part.counts.heading, word) * WEIGHTS.heading + scoreWord(part.counts.text, word) * WEIGHTS.text;
    if (score === 0) return 0;
    if (page > 0) inPage += 1;
    sum += score;
  }
  // A page that is named by the complete query begins with its own first part.
  if (part.isFirst && inPage === query.length) sum += 10 * query.length;
  // A part that only belongs to a page of that name comes after those that contain the words.
  if (!part.isFirst && inPage === query.length && query.every((word) => !scoreWord(part.counts.heading, word))) sum *= 0.6;
  // The list of all pages names everything.
  return part.page.section ? sum : sum / 4;
}

/** The best parts, at most three of a page. */
function findParts(parts, text) {
  const query = [...new Set(words(text))];
  if (!query.length) return [];
  const scored = parts.map((part) => ({ part, score: scorePart(part, query) })).filter(({ score }) => score > 0);
  scored.sort((a, b) => b.score - a.score);
  const ofPage = new Map();
  const found = scored.filter(({ part }) => {
    const count = (ofPage.get(part.page) || 0) + 1;
    ofPage.set(part.page, count);
    return count <= MAX_RESULTS_OF_PAGE;
  });
  return found.slice(0, MAX_RESULTS).map(({ part }) => part);
}

/** The text around the first word of the query, with all words of the query marked. */
function excerpt(text, query) {
  const lower = text.toLowerCase();
  const positions = words(query).map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const first = positions.length ? Math.min(...positions) : 0;
  const begin = first < 60 ? 0 : lower.lastIndexOf(" ", first - 40) + 1;
  const part = text.slice(begin, begin + 170);
  const pattern = words(query).sort((a, b) => b.length - a.length).join("|");
  const pieces = pattern ? part.split(new RegExp(`(${pattern})`, "giu")) : [part];
  const nodes = pieces.map((piece, at) => (at % 2 ? element("mark", {}, piece) : piece));
  return [begin ? "…" : "", ...nodes, begin + 170 < text.length ? "…" : ""];
}

function addSearch(box) {
  const input = element("input", {
    type: "search", role: "combobox", placeholder: "Search (press /)", "aria-label": "Search the documentation", "aria-expanded": "false",
    "aria-controls": "site-results", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
  });
  const results = element("div", { id: "site-results", class: "results", role: "listbox", "aria-label": "Results" });
  const status = element("div", { class: "skip", role: "status" });
  results.hidden = true;
  box.append(input, results, status);
  let parts = null;
  let selected = 0;

  const options = () => [...results.querySelectorAll("[role=option]")];
  const address = (part) => part.page.address + (part.anchor ? `#${part.anchor}` : "");
  const load = () => {
    parts ||= fetch(box.dataset.index).then((response) => (response.ok ? response.json() : Promise.reject(new Error(`status ${response.status}`)))).then(prepare);
    return parts;
  };
  const close = () => {
    results.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const select = (at) => {
    const all = options();
    if (!all.length) return;
    selected = (at + all.length) % all.length;
    all.forEach((option, n) => option.setAttribute("aria-selected", String(n === selected)));
    all[selected].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", all[selected].id);
  };
  const open = (option) => {
    close();
    location.href = option.dataset.address;
  };
  const show = async () => {
    const text = input.value;
    if (!text.trim()) return close();
    let found;
    try {
      found = findParts(await load(), text);
    } catch (error) {
      parts = null;
      status.textContent = "";
      results.replaceChildren(element("div", { class: "nothing", role: "option", "aria-disabled": "true" }, `The search index did not load: ${error.message}`));
      results.hidden = false;
      return;
    }
    if (text !== input.value) return;
    const entries = found.map((part, at) => {
      const option = element("div", { role: "option", id: `result-${at}`, "aria-selected": "false", "data-address": address(part) },
        element("strong", {}, part.heading ? `${part.page.title}: ${part.heading}` : part.page.title),
        element("small", {}, part.page.section || "Documentation"),
        element("span", { class: "text" }, ...excerpt(part.text, text)));
      option.addEventListener("mousedown", (event) => event.preventDefault());
      option.addEventListener("click", () => open(option));
      option.addEventListener("mousemove", () => selected === at || select(at));
      return option;
    });
    results.replaceChildren(...(entries.length ? entries : [element("div", { class: "nothing" }, "Nothing found.")]));
    results.setAttribute("role", entries.length ? "listbox" : "note");
    results.hidden = false;
    input.setAttribute("aria-expanded", "true");
    status.textContent = entries.length === 1 ? "1 result" : `${entries.length} results`;
    select(0);
  };

  input.addEventListener("focus", () => { load().catch(() => { parts = null; }); show(); });
  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves && !results.hidden) {
      event.preventDefault();
      select(selected + moves[event.key]);
    } else if (event.key === "Enter" && !results.hidden && options().length) {
      event.preventDefault();
      open(options()[selected]);
    } else if (event.key === "Escape") {
      if (results.hidden) input.blur();
      else close();
    }
  });
  addEventListener("keydown", (event) => {
    const isTyped = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || "");
    if (event.key !== "/" || isTyped || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}

/* ---- start -------------------------------------------------------------------------------- */

addCopyButtons();
addSearch(document.getElementById("site-search"));
const contents = document.getElementById("site-contents");
if (contents) {
  const wide = matchMedia("(min-width: 80.01rem)");
  const adjust = () => { contents.open = wide.matches; };
  wide.addEventListener("change", adjust);
  adjust();
}
// The menu of narrow windows is open while the fragment of the address is its id.
addEventListener("keydown", (event) => { if (event.key === "Escape" && location.hash === "#site-pages") location.hash = "#site-content"; });
