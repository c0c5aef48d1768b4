// The questions to the server about the text on the desk. A new text cancels what is under way.

import { lines, post, session } from "./api.js";
import { desk, first, question, targetOf, wanted } from "./desk.js";
import { marksOf, state } from "./state.js";
import { carried } from "./text.js";

const KNOWN = 400; // answers about erased texts that are kept, so that a slider drawn back costs nothing
const known = new Map();

export async function read(one, signal) {
  const asked = question(one, state);
  [one.reading, one.whole] = await Promise.all([post("api/tokens", asked, signal), post("api/predict", asked, signal)]);
  one.now = one.whole;
  one.of = "";
}

// What the model says of what is left.
export async function predict(one, signal) {
  if (!one.whole || !first().reading || !one.reading) return;
  if (!state.marked.size) {
    one.now = one.whole;
    one.of = "";
    return;
  }
  const marks = marksOf(state); // before the answer is waited for: more may be marked meanwhile
  const places = carried(state.marked, first().reading, one.reading);
  const asked = { ...question(one, state), [state.mode === "erase" ? "erased" : "kept"]: places, operator: state.operator };
  const key = JSON.stringify(asked);
  if (!known.has(key)) {
    known.set(key, await post("api/predict", asked, signal));
    if (known.size > KNOWN) known.delete(known.keys().next().value);
  }
  one.now = known.get(key);
  one.of = marks;
}

export async function explain(one, signal, arrived) {
  const methods = state.methods.filter((method) => !one.answers.has(method));
  if (!methods.length) return;
  const asked = { ...wanted(one, state), methods, level: state.level, session };
  for await (const line of lines("api/explain", asked, signal)) {
    if (!line.method) continue; // the end, or that it was cancelled
    one.answers.set(line.method, line);
    arrived(line.method);
  }
}

export async function curves(one, signal, arrived) {
  const scores = {};
  for (const method of state.methods) {
    const answer = one.answers.get(method);
    if (answer?.scores && !one.curves.has(method)) scores[method] = answer.scores;
  }
  if (!Object.keys(scores).length) return;
  const asked = { ...question(one, state), scores, operator: state.operator, level: state.level, target: targetOf(one, state), session };
  for await (const line of lines("api/curves", asked, signal)) {
    if (line.random) one.random = line.random;
    if (!line.method) continue;
    one.curves.set(line.method, line);
    arrived(line.method);
  }
}

export async function agree(signal, arrived) {
  const [a, b] = desk.sides;
  const methods = state.methods.filter((method) => !a.agreement.has(method) && a.answers.get(method)?.scores && b.answers.get(method)?.scores);
  if (!methods.length) return;
  for await (const line of lines("api/agreement", { ...question(a, state), other: b.model.name, methods, session }, signal)) {
    if (!line.method) continue;
    a.agreement.set(line.method, line);
    arrived(line.method);
  }
}
