// Beside the text: what each model says of what is left of it, and where two models differ.

import { bars, headline } from "./bars.js";
import { desk } from "./desk.js";
import { $, change, make, probability } from "./dom.js";
import { state } from "./state.js";

const names = (label) => [label ?? []].flat().join(", ") || "no class";

function differ() {
  const [a, b] = desk.sides;
  if (!b?.now || !a.now) return null;
  const same = names(a.now.label) === names(b.now.label);
  const line = make("p", same ? "differ" : "differ apart");
  line.append(make("strong", "", same ? `Both say ${names(a.now.label)}.` : `They differ: ${names(a.now.label)} and ${names(b.now.label)}.`));
  const theirs = new Map(b.now.probabilities.map((one) => [one.label, one.probability]));
  const shared = a.now.probabilities.filter((one) => theirs.has(one.label)).map((one) => [one.label, theirs.get(one.label) - one.probability]);
  const [label, most] = shared.sort((one, two) => Math.abs(two[1]) - Math.abs(one[1]))[0] ?? [];
  if (label !== undefined) line.append(` The second gives ${label} ${change(most)} more.`.replace("+", "").replace(/−(\S+) more/, "$1 less"));
  else line.append(" They have no class in common.");
  return line;
}

export function drawRail() {
  const blocks = desk.sides.filter((one) => one.whole).map((one) => {
    const now = one.now ?? one.whole;
    const title = desk.sides.length > 1 ? one.model.name : state.marked.size ? (state.mode === "erase" ? "Without the erased words" : "With the kept words only") : "The model says";
    return make("section", "model", make("h2", "kicker", title), headline(one.whole, now), bars(one.whole, now));
  });
  const key = state.marked.size ? make("p", "key soft small", make("span", "ghost-key"), "the whole text") : null;
  $("said").replaceChildren(...blocks, ...[blocks.length ? key : null, differ()].filter(Boolean));
  $("said").classList.toggle("few", desk.sides.length === 1 && desk.sides.every((one) => (one.model.labels ?? []).length <= 4));
}

export function tellRail() {
  const said = desk.sides.filter((one) => one.now).map((one) => {
    const label = names(one.now.label);
    const value = one.now.probabilities.find((row) => row.label === label)?.probability;
    return `${one.model.name}: ${label}${value === undefined ? "" : ` ${probability(value)}`}`;
  });
  $("live").textContent = said.join("; ");
}
