// The page: what is chosen goes to the server, what comes back goes to its place.

import { get } from "./api.js";
import { drawExamples, listenExamples, place } from "./browse.js";
import { drawCards, fillCard, follow, followMarks } from "./cards.js";
import { chooseModel } from "./choose.js";
import { report } from "./connection.js";
import { desk, first, modelOf, side } from "./desk.js";
import { $, complain, count, make, options } from "./dom.js";
import { listen, markOnly, paint } from "./marks.js";
import { drawPicker } from "./picker.js";
import { drawRail, tellRail } from "./rail.js";
import { listenShare } from "./share.js";
import { fragment, recall, remember, state } from "./state.js";
import { drawStrip, listenStrip } from "./strip.js";
import { units } from "./text.js";
import { drawTold } from "./told.js";
import { drawWatch, rest } from "./watch.js";
import { agree, curves, explain, predict, read } from "./work.js";

const PAUSE = 350; // milliseconds without a keystroke after which a text is taken as meant

let aboutText = new AbortController(); // ends when the text, its context or a model changes
let round = new AbortController(); // ends when the methods change, too
let typed = null;

// -- the text ----------------------------------------------------------------------------------------------------

function clear() {
  for (const id of ["text-error", "predict-error", "explain-error", "curves-error"]) complain($(id), "");
}

function stop() {
  aboutText.abort();
  round.abort();
  aboutText = new AbortController();
}

async function start() {
  stop();
  clear();
  remember();
  links();
  desk.sides = [side(modelOf(state.model), "a")];
  if (modelOf(state.other)) desk.sides.push(side(modelOf(state.other), "b"));
  const empty = !state.text.trim();
  for (const id of ["erase", "methods"]) $(id).hidden = empty;
  if (empty) {
    $("said").replaceChildren(make("p", "soft", "What the model says of a text stands here."));
    $("counted").textContent = "";
    $("told").hidden = true;
    document.body.classList.remove("stale");
    return;
  }
  document.body.classList.add("stale");
  const most = desk.info.limits?.characters ?? Infinity;
  const length = Math.max([...state.text].length, [...state.context].length);
  if (length > most) { // what would be refused is not asked
    complain($("text-error"), `The text has ${length.toLocaleString("en")} characters and ${most.toLocaleString("en")} are the most; shorten it.`);
    return;
  }
  const { signal } = aboutText;
  try {
    await Promise.all(desk.sides.map((one) => read(one, signal)));
  } catch (error) {
    report(error, $("text-error"), start, start);
    return;
  }
  document.body.classList.remove("stale");
  const free = new Set(first().reading.tokens.filter((token) => token.free).map((token) => token.index));
  state.marked = new Set([...state.marked].filter((place) => free.has(place)));
  drawText();
  drawCards($("cards"), marksChanged);
  $("told").hidden = !drawTold($("answer"));
  if (state.marked.size) refresh();
  explainAll();
}

function drawText() {
  const { reading, model } = first();
  const tokens = reading.tokens.filter((token) => token.free).length;
  const said = [`${count(reading.words.length, "word")}, ${count(tokens, "token")}`];
  if (reading.windows > 1) said.push(`longer than the ${model.max_tokens} tokens that the model reads at once: read in ${reading.windows} windows`);
  else if (reading.truncated) said.push(`the model reads at most ${model.max_tokens} tokens; what is struck out is not read`);
  $("counted").textContent = said.join("; ");
  drawStrip($("strip"), reading);
  drawMarked();
  drawRail();
  tellRail();
}

function drawMarked() {
  const found = units(first().reading, state.level);
  const marked = found.filter((unit) => unit.tokens.some((place) => state.marked.has(place))).length;
  const what = state.mode === "erase" ? "erased" : "kept";
  const hint = state.mode === "erase" ? `Click the ${state.level}s to erase, or draw over several.` : `Click the ${state.level}s to keep; the others are erased.`;
  $("marked").textContent = marked ? `${marked} of ${count(found.length, state.level)} ${what}.` : hint;
  $("back").disabled = !marked;
}

// -- the methods -------------------------------------------------------------------------------------------------

async function explainAll() {
  round.abort();
  round = new AbortController();
  const { signal } = round;
  complain($("explain-error"), "");
  complain($("curves-error"), "");
  const tally = () => {
    const done = state.methods.filter((method) => desk.sides.every((one) => one.answers.has(method))).length;
    $("progress").textContent = done < state.methods.length ? `${done} of ${count(state.methods.length, "method")} done` : "";
  };
  const filled = (method) => {
    fillCard($("cards"), method);
    tally();
  };
  const told = () => ($("told").hidden = !drawTold($("answer")));
  const step = async (place, work) => {
    try {
      await Promise.all(work());
    } catch (error) {
      report(error, $(place), start, explainAll);
    }
    return !signal.aborted;
  };
  tally();
  const every = (ask, arrived) => () => desk.sides.map((one) => ask(one, signal, arrived));
  if (!(await step("explain-error", every(explain, filled)))) return;
  tally();
  if (desk.sides.length > 1 && !(await step("explain-error", () => [agree(signal, filled)]))) return;
  await step("curves-error", every(curves, (method) => (filled(method), told())));
  if (!signal.aborted) told();
}

function methodsChanged() {
  drawPicker($("picked"), $("choices"), methodsChanged);
  remember();
  links();
  if (!first()?.reading) return;
  drawCards($("cards"), marksChanged);
  $("told").hidden = !drawTold($("answer"));
  explainAll();
}

// -- marks -------------------------------------------------------------------------------------------------------

let waiting = false;
let asking = false;
let changed = false;

function marksChanged() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (!first()?.reading) return;
    paint($("strip"));
    followMarks($("cards"));
    drawMarked();
    refresh();
  });
}

function markedByHand() {
  follow(null);
  marksChanged();
}

// One question at a time, and then about what is marked by then: a slider that is drawn leaves no queue behind it.
async function refresh() {
  changed = true;
  if (asking) return;
  asking = true;
  try {
    while (changed) {
      changed = false;
      await Promise.all(desk.sides.map((one) => predict(one, aboutText.signal)));
      drawRail();
    }
    complain($("predict-error"), "");
    $("told").hidden = !drawTold($("answer"));
    tellRail();
    remember();
    links();
  } catch (error) {
    report(error, $("predict-error"), start, refresh);
  } finally {
    asking = false;
  }
}

// -- choices -----------------------------------------------------------------------------------------------------

function grow(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

function typing() {
  stop(); // at the first keystroke, not after the pause
  state.marked = new Set();
  follow(null);
  state.text = $("text").value;
  state.context = $("context").value;
  remember(); // before the pause: who leaves for another view within it keeps what was typed
  links();
  clearTimeout(typed);
  typed = setTimeout(start, PAUSE);
}

// Takes over what an address says, as far as it is offered here.
async function take(found) {
  const names = desk.info.models.map((model) => model.name);
  const before = JSON.stringify([state.model, state.other, state.text, state.context, state.target, state.contrast, state.methods, [...state.marked]]);
  Object.assign(state, found);
  if (!names.includes(state.model)) state.model = names[0];
  if (names.length < 2) state.other = "";
  else if (!names.includes(state.other) || state.other === state.model) state.other = state.other === "none" ? "none" : names.find((name) => name !== state.model);
  const model = modelOf(state.model);
  if (!model.operators.includes(state.operator)) state.operator = model.operators[0];
  if (state.target !== "predicted" && !model.labels.includes(state.target)) state.target = "predicted";
  if (state.contrast === state.target || !["", "second", ...model.labels].includes(state.contrast)) state.contrast = "";
  if (!["word", "token"].includes(state.level)) state.level = "word";
  if (!["erase", "keep"].includes(state.mode)) state.mode = "erase";
  ({ source: state.source, split: state.split } = place(state.source, state.split));
  if (!["first", "wrong", "confident", "disagreeing"].includes(state.sort)) state.sort = "first";
  if (!["play", "examples", "watch"].includes(state.view)) state.view = "play";
  const after = JSON.stringify([state.model, state.other, state.text, state.context, state.target, state.contrast, state.methods, [...state.marked]]);
  show();
  if (before !== after || !first()) await begin();
  else links();
}

async function begin() {
  $("text").value = state.text;
  $("context").value = state.context;
  $("model").value = state.model;
  $("other").value = state.other;
  for (const name of ["mode", "level"]) document.querySelector(`input[name="${name}"][value="${state[name]}"]`).checked = true;
  follow(null);
  try {
    await chooseModel(methodsChanged);
  } catch (error) {
    report(error, $("explain-error"), begin, begin);
    return;
  }
  grow($("text"));
  grow($("context"));
  await start();
}

// -- views -------------------------------------------------------------------------------------------------------

function links() {
  for (const view of ["play", "examples", "watch"]) $(`to-${view}`).href = fragment({ view });
}

function show() {
  for (const view of ["play", "examples", "watch"]) {
    $(view).hidden = state.view !== view;
    if (state.view === view) $(`to-${view}`).setAttribute("aria-current", "page");
    else $(`to-${view}`).removeAttribute("aria-current");
  }
  $("actions").hidden = state.view !== "play";
  rest();
  if (state.view === "examples") drawExamples();
  if (state.view === "watch") drawWatch();
  if (state.view === "play") grow($("text"));
}

function listenAll() {
  for (const id of ["text", "context"]) {
    $(id).addEventListener("input", () => {
      grow($(id));
      typing();
    });
  }
  $("context-field").addEventListener("toggle", () => grow($("context")));
  $("model").addEventListener("change", () => {
    state.marked = new Set();
    take({ ...state, model: $("model").value });
  });
  $("other").addEventListener("change", () => take({ ...state, other: $("other").value }));
  $("target").addEventListener("change", () => {
    state.target = $("target").value;
    if (state.contrast === state.target) $("contrast").value = state.contrast = "";
    start();
  });
  $("contrast").addEventListener("change", () => {
    state.contrast = $("contrast").value;
    if (state.contrast === state.target) $("target").value = state.target = "predicted";
    start();
  });
  $("operator").addEventListener("change", () => {
    state.operator = $("operator").value;
    for (const one of desk.sides) one.curves.clear();
    marksChanged();
    explainAll();
  });
  $("mode").addEventListener("change", (event) => {
    state.mode = event.target.value;
    marksChanged();
  });
  $("level").addEventListener("change", (event) => {
    state.level = event.target.value;
    if (!first()?.reading) return;
    markOnly(units(first().reading, state.level).filter((unit) => unit.tokens.some((place) => state.marked.has(place))));
    drawStrip($("strip"), first().reading);
    for (const one of desk.sides) one.curves.clear();
    drawCards($("cards"), marksChanged);
    marksChanged();
    explainAll();
  });
  $("back").addEventListener("click", () => {
    state.marked.clear();
    markedByHand();
    $("strip").querySelector('[tabindex="0"]')?.focus();
  });
  listenStrip($("strip"), markedByHand);
  listen($("cards"), markedByHand);
  window.addEventListener("hashchange", () => take(recall(location.hash)));
  window.addEventListener("resize", () => grow($("text")));
}

async function openPage() {
  try {
    desk.info = await get("api/info");
  } catch (error) {
    report(error, $("banner"), openPage, openPage);
    return;
  }
  if (!desk.info.models.length) return onlyWatch();
  const names = desk.info.models.map((model) => model.name);
  options($("model"), names.map((name) => [name, name]), names[0]);
  options($("other"), [["none", "no other"], ...names.map((name) => [name, name])], "none");
  $("beside").hidden = names.length < 2;
  const memory = desk.info.models.reduce((sum, model) => sum + (model.memory_mb ?? 0), 0);
  $("foot").textContent = `Veridical ${desk.info.version}${memory ? `; ${names.length > 1 ? "the models take" : "the model takes"} ${Math.round(memory)} MB` : ""}. Texts go to the server that you started and nowhere else. A highlight says what a method found, not that the model works that way.`;
  listenAll();
  listenShare();
  listenExamples();
  const found = recall(location.hash);
  if (!found.text) await firstExample(found);
  await take(found);
}

// Started without a model there is only work to look at.
function onlyWatch() {
  for (const view of ["play", "examples"]) $(`to-${view}`).parentNode.hidden = true;
  $("foot").textContent = `Veridical ${desk.info.version}`;
  state.view = "watch";
  show();
}

// Somebody who opens the page without a text sees one of the data's, not an empty box.
async function firstExample(found) {
  const { source, split } = place(found.source, found.split);
  if (!source) return;
  const asked = new URLSearchParams({ model: desk.info.models[0].name, source, split, sort: "first", offset: 0, limit: 1 });
  try {
    const { examples } = await get(`api/examples?${asked}`);
    if (examples.length) Object.assign(found, { text: examples[0].text, context: examples[0].context ?? "" });
  } catch (error) {
    report(error, $("text-error"), openPage);
  }
}

// A page that another site led to shows its text, and asks nothing of the server before a click.
function openNow() {
  if (!document.documentElement.hasAttribute("data-waits")) return openPage();
  $("play").hidden = $("waits").hidden = false;
  $("text").value = recall(location.hash).text ?? "";
  $("explain-now").addEventListener("click", () => {
    document.documentElement.removeAttribute("data-waits");
    $("waits").hidden = true;
    openPage();
  });
}

openNow();
