// What a model says: a bar for every class, and behind it, as a ghost, what it said of the whole text.

import { change, make, probability } from "./dom.js";

const MOST = 8; // classes shown at once

const names = (label) => [label ?? []].flat();

function bar(label, whole, now, multi) {
  const item = make("li", "class");
  const track = make("span", "track");
  const ghost = make("span", "ghost");
  const fill = make("span", "fill");
  ghost.style.setProperty("--p", whole);
  fill.style.setProperty("--p", now);
  track.setAttribute("aria-hidden", "true");
  track.append(fill, ghost);
  if (multi) track.append(make("span", "half"));
  const value = make("span", "value", probability(now));
  const moved = Math.abs(now - whole) >= 0.0005;
  const delta = make("span", "delta", moved ? change(now - whole) : "");
  if (moved) delta.append(make("span", "hush", `, ${probability(whole)} with the whole text`));
  const name = make("span", "label", label);
  name.title = label;
  item.append(name, value, delta, track);
  return item;
}

// The classes in the model's order; of many only those with the largest probability, before or now.
export function bars(whole, now) {
  const was = new Map(whole.probabilities.map((one) => [one.label, one.probability]));
  const all = now.probabilities.map((one) => ({ label: one.label, now: one.probability, whole: was.get(one.label) ?? 0 }));
  const largest = [...all].sort((a, b) => Math.max(b.now, b.whole) - Math.max(a.now, a.whole)).slice(0, MOST);
  const list = make("ul", "bars");
  for (const one of all) if (largest.includes(one)) list.append(bar(one.label, one.whole, one.now, whole.multi_label));
  if (all.length > MOST) list.append(make("li", "soft small", `and ${all.length - MOST} more classes, each with less`));
  return list;
}

export function headline(whole, now) {
  const said = names(now.label);
  const line = make("p", "said", make("strong", "", said.length ? said.join(", ") : "no class"));
  const best = Math.max(...now.probabilities.filter((one) => said.includes(one.label)).map((one) => one.probability));
  if (said.length === 1) line.append(" ", make("span", "soft", probability(best)));
  const before = names(whole.label);
  if (before.join("\n") !== said.join("\n")) line.append(make("span", "turned", `was ${before.join(", ") || "no class"}`));
  return line;
}
