// A model is chosen: what it reads, how words can be erased for it, which classes and methods it has.

import { Lost, Refusal, get } from "./api.js";
import { desk, modelOf } from "./desk.js";
import { $, count, make, options, prose } from "./dom.js";
import { drawPicker } from "./picker.js";
import { state } from "./state.js";

const BY = { delete: "deleting", mask: "masking", attention: "hiding from attention" };
const RECOUNT = 4000; // milliseconds until passes that were not counted yet are asked for again

let recount = null;

export async function chooseModel(changed) {
  clearTimeout(recount);
  const model = modelOf(state.model);
  $("context-field").hidden = !model.pairs;
  if (state.context) $("context-field").open = true;
  const parameters = model.parameters ? `${(model.parameters / 1e6).toFixed(model.parameters < 1e7 ? 1 : 0)} million parameters` : null;
  $("about-model").textContent = [model.family, parameters, `reads ${model.max_tokens} tokens at once`].filter(Boolean).join(", ");
  options($("operator"), model.operators.map((name) => [name, BY[name] ?? name]), state.operator);
  options($("target"), [["predicted", "the predicted class"], ...model.labels.map((label) => [label, label])], state.target);
  $("against").hidden = model.labels.length < 2;
  options($("contrast"), [["", "no other class"], ["second", "the likeliest other"], ...model.labels.map((label) => [label, label])], state.contrast);
  const found = await methodsOf(model);
  const offered = state.methods.filter((spec) => desk.methods.has(spec.split(":")[0]));
  state.methods = offered.length || state.none ? offered : found.default;
  $("audited").replaceChildren(...audited(model, desk.info.audit));
  drawPicker($("picked"), $("choices"), changed);
  if (found.counting) recount = setTimeout(() => countAgain(model, changed), RECOUNT);
}

async function methodsOf(model) {
  const found = await get(`api/methods?${new URLSearchParams({ model: model.name })}`);
  desk.methods = new Map(found.methods.map((known) => [known.name, known]));
  return found;
}

async function countAgain(model, changed) {
  if (model.name !== state.model) return;
  let found;
  try {
    found = await methodsOf(model);
  } catch (error) {
    if (!(error instanceof Lost) && !(error instanceof Refusal)) throw error;
    recount = setTimeout(() => countAgain(model, changed), RECOUNT); // whoever asks for more than this says what is wrong
    return;
  }
  drawPicker($("picked"), $("choices"), changed);
  if (found.counting) recount = setTimeout(() => countAgain(model, changed), RECOUNT);
}

function audited(model, audit) {
  if (!audit) return prose("No audit was named, so nothing is said here of which to believe. `veridical audit` finds out, `veridical serve MODEL --audit DIR` shows it.");
  const parts = ["The audit of ", make("code", "", audit.name), `, ${count(audit.texts, "text")}: `, ...prose(audit.verdict)];
  if (model.audited === false) parts.push(make("strong", "", ` It is of another model (${audit.model}), so what it found may not hold here.`));
  for (const [title, url] of [["Its report", audit.url], ["Its record", audit.record]]) {
    if (!url) continue;
    const link = make("a", "", title);
    Object.assign(link, { href: url.replace(/^\//, ""), target: "_blank", rel: "noopener" });
    parts.push(" ", link);
  }
  return parts;
}
