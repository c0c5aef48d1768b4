// A card per method: what it says of the text, what the audit found about it, what it cost, and its curves.

import { desk, explained, first, lacking } from "./desk.js";
import { complain, count, duration, make, prose } from "./dom.js";
import { plots } from "./curves.js";
import { highlight, legend, spoken } from "./highlight.js";
import { markOnly, paint } from "./marks.js";
import { state } from "./state.js";
import { ranked, scoresOf, units } from "./text.js";

const SIGNS = { believe: "✓", "as good": "≈", open: "?", worse: "↓", "no better than chance": "✗" };
const WORDS = { "no better than chance": "do not use" }; // as the audit's own page has it
let led = null; // the method whose slider chose what is marked

export function badge(audit) {
  if (!audit) return null;
  const node = make("span", `badge ${audit.standing.replaceAll(" ", "-")}`, `${SIGNS[audit.standing] ?? ""} ${WORDS[audit.standing] ?? audit.standing}`.trim());
  node.title = audit.sentence ?? "";
  return node;
}

const cost = (answer) => [answer.seconds === undefined ? null : duration(answer.seconds), answer.passes ? count(answer.passes, "pass", "passes") : null].filter(Boolean).join(" · ");

export const leads = (method) => led === method;
export const follow = (method) => (led = method);

export function topOf(method, k) {
  const one = first();
  const answer = one.answers.get(method);
  if (!answer?.scores) return [];
  const found = units(one.reading, state.level);
  return ranked(scoresOf(found, state.level, answer)).slice(0, k).map((number) => found[number]);
}

function slider(method, changed) {
  const range = make("input", "top");
  Object.assign(range, { type: "range", min: 0, max: 1, value: 0, id: `top-${method}` });
  const shown = make("output", "n", "0");
  const label = make("label", "", make("span", "does", "Erase its top"));
  label.htmlFor = range.id;
  label.append(make("span", "hush", ` words of ${method}`)); // every slider says which it is
  range.addEventListener("input", () => {
    led = method;
    markOnly(topOf(method, Number(range.value)));
    changed();
  });
  return make("div", "lead", label, range, shown);
}

export function drawCards(root, changed) {
  const there = new Map([...root.children].map((card) => [card.dataset.method, card]));
  root.replaceChildren(
    ...state.methods.map((method) => {
      const card = there.get(method) ?? make("article", "method");
      card.dataset.method = method;
      card.setAttribute("aria-label", method);
      if (!card.children.length) card.append(make("div", "content"), slider(method, changed));
      return card;
    }),
  );
  root.classList.toggle("two", desk.sides.length > 1);
  for (const method of state.methods) fillCard(root, method);
}

function top(method) {
  const known = desk.methods.get(method);
  const answer = first()?.answers.get(method);
  const name = make("h3", "name", make("code", "", method));
  if (known?.summary) name.title = known.summary;
  const costs = make("span", "cost soft", answer?.scores ? cost(answer) : "");
  const line = make("div", "head", name, badge(known?.audit), costs);
  const sentence = known?.audit?.sentence ? make("p", "found soft", ...prose(known.audit.sentence)) : null;
  return [line, sentence].filter(Boolean);
}

function column(one, method) {
  const box = make("div", "side");
  const answer = one.answers.get(method);
  if (desk.sides.length > 1) box.append(make("p", "whose soft", one.model.name));
  if (!answer) {
    box.append(make("p", "waiting soft", "under way"));
    return box;
  }
  if (answer.error) {
    const place = make("p", "error");
    complain(place, answer.error.message);
    box.append(place);
    return box;
  }
  if (!one.reading) return box;
  const instead = lacking(one, state);
  if (instead) box.append(make("p", "note soft", instead));
  box.append(highlight(one, answer), make("p", "hush", spoken(one, answer)), legend(answer));
  for (const note of answer.notes ?? []) box.append(make("p", "note soft", ...prose(note)));
  box.append(make("div", "plots"));
  box.lastChild.dataset.side = one.key;
  return box;
}

function together(method) {
  const found = first()?.agreement.get(method);
  if (desk.sides.length < 2 || !found) return null;
  if (found.error) {
    const place = make("p", "error");
    complain(place, found.error.message);
    return place;
  }
  const parts = [];
  if (typeof found.tau === "number") parts.push(`rank correlation ${found.tau.toFixed(2).replace("-", "−")} (Kendall)`);
  if (typeof found.top_overlap === "number") parts.push(`their top quarters overlap by ${Math.round(found.top_overlap * 100)}%`);
  if (found.same_class === false) parts.push("each explains its own class");
  return parts.length ? make("p", "agreement", make("b", "", "Between the models: "), parts.join(", ")) : make("p", "agreement soft", "Between the models: agreement is undefined here.");
}

export function fillCard(root, method) {
  const card = root.querySelector(`[data-method="${CSS.escape(method)}"]`);
  if (!card) return;
  const sides = make("div", "sides", ...desk.sides.map((one) => column(one, method)));
  card.firstChild.replaceChildren(...top(method), sides, ...[together(method)].filter(Boolean));
  card.classList.remove("stale");
  card.setAttribute("aria-busy", String(desk.sides.some((one) => !one.answers.has(method))));
  paint(card);
  drawLead(card, method);
  drawPlots(card, method);
}

function drawLead(card, method) {
  const lead = card.querySelector(".lead");
  const answer = first()?.answers.get(method);
  lead.hidden = !answer?.scores || !first().reading;
  if (lead.hidden) return;
  const found = units(first().reading, state.level);
  const range = lead.querySelector("input");
  const chosen = led === method ? found.filter((unit) => unit.tokens.some((place) => state.marked.has(place))).length : 0;
  range.max = found.length;
  range.value = chosen;
  lead.querySelector("output").textContent = `${chosen} of ${found.length}`;
  lead.querySelector(".does").textContent = state.mode === "erase" ? "Erase its top" : "Keep only its top";
  range.setAttribute("aria-valuetext", count(chosen, state.level));
}

function drawPlots(card, method) {
  for (const place of card.querySelectorAll(".plots")) {
    const one = desk.sides.find((side) => side.key === place.dataset.side);
    const curve = one?.curves.get(method);
    if (!curve || !one.random) continue;
    if (curve.error) {
      const said = make("p", "error");
      complain(said, curve.error.message);
      place.replaceChildren(said);
      continue;
    }
    const free = first().reading.tokens.filter((token) => token.free).length;
    const share = state.marked.size ? state.marked.size / free : null;
    place.replaceChildren(plots(curve, one.random, explained(one, state), state.mode === "erase" ? share : null, state.mode === "keep" ? share : null));
  }
}

// After marks or the mode changed: nothing is asked anew, only the copies of the text follow.
export function followMarks(root) {
  paint(root);
  for (const card of root.children) {
    drawLead(card, card.dataset.method);
    drawPlots(card, card.dataset.method);
  }
}
