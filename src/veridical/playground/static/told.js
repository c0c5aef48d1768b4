// "Which of these methods would have told you this?", answered for the text on the desk and for no other.

import { topOf } from "./cards.js";
import { gains } from "./curves.js";
import { desk, explained, first } from "./desk.js";
import { change, count, listed, make, probability } from "./dom.js";
import { marksOf, state } from "./state.js";
import { units } from "./text.js";

const NOTHING = 0.01; // a mean lead over random orders that is smaller is no lead

function rows(one) {
  const all = state.methods.filter((method) => one.curves.get(method)?.deletion).map((method) => ({ method, ...gains(one.curves.get(method), one.random) }));
  return all.sort((a, b) => b.deletion - a.deletion);
}

function sentence(one, all) {
  const label = explained(one, state);
  const best = all.filter((row) => row.deletion > NOTHING);
  const line = make("p", "verdict");
  if (!best.length) {
    line.append(`On this one text none of these methods finds what ${label} rests on faster than a random order does.`);
    return line;
  }
  const names = best.filter((row) => best[0].deletion - row.deletion < NOTHING).map((row) => row.method);
  line.append("On this one text, ", make("b", "", listed(names)), names.length > 1 ? " take " : " takes ", make("i", "", label), " away fastest");
  const no = all.filter((row) => row.deletion <= NOTHING).map((row) => row.method);
  line.append(no.length ? `; ${listed(no)} ${no.length > 1 ? "do" : "does"} no better than a random order.` : ".");
  return line;
}

function lane(value, widest, ahead) {
  const track = make("span", ahead ? "lane ahead" : "lane"); // where nothing is behind random, the bars begin at the left
  const fill = make("span", value < 0 ? "less" : "more");
  fill.style.setProperty("--p", Math.min(1, Math.abs(value) / widest));
  track.append(fill);
  track.setAttribute("aria-hidden", "true");
  return track;
}

function table(all, hits) {
  const widest = Math.max(0.05, ...all.flatMap((row) => [Math.abs(row.deletion), Math.abs(row.insertion)]));
  const ahead = all.every((row) => row.deletion >= 0 && row.insertion >= 0);
  const head = make("tr", "", ...["method", "erasing, ahead of random", "putting back, ahead of random"].map((name) => make("th", "", name)));
  if (hits) head.append(make("th", "", hits.title));
  for (const cell of head.children) cell.scope = "col";
  const body = all.map((row) => {
    const name = make("th", "", make("code", "", row.method));
    name.scope = "row";
    const cells = [row.deletion, row.insertion].map((value) => make("td", "", lane(value, widest, ahead), make("span", "n", change(value, 2))));
    const line = make("tr", "", name, ...cells);
    [...line.children].forEach((cell, place) => (cell.dataset.title = head.children[place].textContent));
    if (hits) line.append(make("td", "hits", hits.of.get(row.method) ?? ""));
    if (hits) line.lastChild.dataset.title = hits.title;
    return line;
  });
  return make("table", "leads", make("thead", "", head), make("tbody", "", ...body));
}

// Of as many words as the reader marked: how many of them each method names.
function hitsOf(one) {
  if (one !== first() || !state.marked.size) return null;
  const found = units(one.reading, state.level);
  const yours = found.filter((unit) => unit.tokens.some((place) => state.marked.has(place)));
  const of = new Map();
  for (const method of state.methods) {
    if (!one.answers.get(method)?.scores) continue;
    const named = new Set(topOf(method, yours.length).map((unit) => unit.start));
    of.set(method, `${yours.filter((unit) => named.has(unit.start)).length} of ${yours.length}`);
  }
  return { title: `of your ${count(yours.length, state.level)} in its top ${yours.length}`, of, yours };
}

function moved(one, hits) {
  const label = explained(one, state);
  const find = (said) => said?.probabilities.find((row) => row.label === label)?.probability;
  const [before, now] = [find(one.whole), find(one.now)];
  if (!hits || one.of !== marksOf(state) || before === undefined || now === undefined) return null;
  const what = `You ${state.mode === "erase" ? "erased" : "kept only"} ${count(hits.yours.length, state.level)}: ${label} went from ${probability(before)} to ${probability(now)}. `;
  const most = Math.max(...[...hits.of.values()].map((text) => parseInt(text, 10)));
  const named = [...hits.of].filter(([, text]) => parseInt(text, 10) === most).map(([method]) => method);
  const all = named.length === hits.of.size && named.length > 1;
  const who = most ? `${all ? "Every one of these methods" : listed(named)} would have named ${most === hits.yours.length ? (most === 1 ? "it" : "them all") : `${most} of them`}.` : "None of the methods would have named any of them.";
  return make("p", "moved", what, hits.of.size ? who : "");
}

export function drawTold(root) {
  const blocks = desk.sides.filter((one) => one.random && rows(one).length).map((one) => {
    const [all, hits] = [rows(one), hitsOf(one)];
    const block = make("div", "block");
    if (desk.sides.length > 1) block.append(make("p", "whose soft", one.model.name));
    block.append(...[sentence(one, all), moved(one, hits), make("div", "scroll", table(all, hits))].filter(Boolean));
    return block;
  });
  root.classList.toggle("two", blocks.length > 1);
  root.replaceChildren(...blocks);
  if (blocks.length) root.append(make("p", "note soft", "Ahead of random: how far, on average over the curve, the probability lies below that of random orders (erasing) or above it (putting back). One text shows what happened here, not which method to believe: that takes an audit over many."));
  return blocks.length > 0;
}
