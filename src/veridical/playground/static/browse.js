// The examples of the data, a page at a time; each is a link to the playground with its text.

import { get } from "./api.js";
import { report } from "./connection.js";
import { desk } from "./desk.js";
import { $, complain, make, options, probability } from "./dom.js";
import { fragment, remember, state } from "./state.js";

const AT_ONCE = 20;
const AGAIN = 1000; // milliseconds until predictions that are still worked out are asked for again
let later = null;
let controller = null;

const said = (label) => [label ?? []].flat().join(", ") || "no class";

function item(one) {
  const link = make("a", "example");
  link.href = fragment({ view: "play", text: one.text, context: one.context ?? "", marked: new Set(), target: "predicted" });
  const text = make("p", "quote", one.text);
  text.dir = "auto";
  const facts = make("p", "facts small");
  if (one.right !== null && one.right !== undefined) facts.append(make("strong", one.right ? "ok" : "bad", one.right ? "✓ right" : "✗ wrong"), " ");
  facts.append(make("span", "", "predicted ", make("b", "", said(one.predicted))));
  if (typeof one.probability === "number") facts.append(make("span", "soft n", probability(one.probability)));
  if (one.label !== null && one.label !== undefined && one.right !== true) facts.append(make("span", "", "labelled ", make("b", "", said(one.label))));
  if (typeof one.disagreement === "number") facts.append(make("span", "soft", `methods disagree ${one.disagreement.toFixed(2)}`));
  facts.append(make("span", "soft id", one.id));
  if (one.context) link.append(make("p", "context small soft", one.context));
  link.append(text, facts);
  return make("li", "", link);
}

export async function drawExamples() {
  controller?.abort();
  controller = new AbortController();
  const there = places().length > 0;
  complain($("examples-error"), there ? "" : "No data was named when the server was started. `veridical serve MODEL --data D` shows its examples here, `--audit DIR` those of an audit.");
  if (!there) {
    $("list").replaceChildren();
    for (const id of ["split", "sort", "previous", "next"]) $(id).disabled = true;
    return;
  }
  $("split").value = `${state.source} ${state.split}`;
  const told = state.source === "audit"; // only an audit knows where methods disagree
  $("sort").querySelector('[value="disagreeing"]').disabled = !told;
  if (!told && state.sort === "disagreeing") state.sort = "first";
  $("sort").value = state.sort;
  $("list").setAttribute("aria-busy", "true");
  const asked = new URLSearchParams({ model: state.model, source: state.source, split: state.split, sort: state.sort, offset: state.offset, limit: AT_ONCE });
  clearTimeout(later);
  try {
    const found = await get(`api/examples?${asked}`, controller.signal);
    show(found);
    if (found.read < found.of) later = setTimeout(() => state.view === "examples" && drawExamples(), AGAIN);
  } catch (error) {
    if (report(error, $("examples-error"), drawExamples, drawExamples)) show({ total: 0, examples: [] });
  }
}

function show({ total, examples, read = 0, of = 0 }) {
  $("list").replaceChildren(...examples.map(item));
  $("list").start = state.offset + 1;
  $("list").removeAttribute("aria-busy");
  $("where").textContent = total ? `${state.offset + 1} to ${state.offset + examples.length} of ${total.toLocaleString("en")}` : "none";
  if (read < of) $("where").append(`; ${read.toLocaleString("en")} of ${of.toLocaleString("en")} texts read so far`);
  $("previous").disabled = state.offset === 0;
  $("next").disabled = state.offset + examples.length >= total;
}

// Where examples come from: the splits of the data, the corpora of the audit.
export function places() {
  const { data, audit } = desk.info;
  const of = (source, name, splits) => Object.entries(splits ?? {}).map(([split, size]) => ({ source, split, name: `${name(split)} (${size.toLocaleString("en")})` }));
  return [...of("data", (split) => `${data.name}, ${split}`, data?.splits), ...of("audit", (split) => `the audit, ${split}`, audit?.splits)];
}

// The place that is asked for, or else the one to begin with.
export function place(source, split) {
  const all = places();
  const found = all.find((one) => one.source === source && one.split === split) ?? all.find((one) => one.split === "test") ?? all[0];
  return found ?? { source: "", split: "" };
}

export function listenExamples() {
  options($("split"), places().map((one) => [`${one.source} ${one.split}`, one.name]), `${state.source} ${state.split}`);
  const turn = (changes) => {
    Object.assign(state, changes);
    remember();
    drawExamples();
  };
  $("split").addEventListener("change", () => {
    const [source, ...split] = $("split").value.split(" ");
    turn({ source, split: split.join(" "), offset: 0 });
  });
  $("sort").addEventListener("change", () => turn({ sort: $("sort").value, offset: 0 }));
  $("previous").addEventListener("click", () => turn({ offset: Math.max(0, state.offset - AT_ONCE) }));
  $("next").addEventListener("click", () => turn({ offset: state.offset + AT_ONCE }));
}
