// Deletion and insertion curves of one method on one text, with the mean of random orders behind them.

import { change, drawn, make, probability } from "./dom.js";

const [WIDTH, HEIGHT, EDGE, LEFT] = [140, 64, 3, 9];

const x = (fraction) => LEFT + fraction * (WIDTH - LEFT - EDGE);
const y = (value) => HEIGHT - EDGE - value * (HEIGHT - 2 * EDGE);

function path(fractions, values, kind) {
  const points = fractions.map((fraction, place) => `${place ? "L" : "M"}${x(fraction).toFixed(1)} ${y(values[place]).toFixed(1)}`);
  return drawn("path", { class: kind, d: points.join("") });
}

// How far, on average, the probability lies below that of random orders while words go, and above it while they come back.
export function gains(curve, random) {
  return {
    deletion: random.areas.deletion - curve.areas.deletion,
    insertion: curve.areas.insertion - random.areas.insertion,
  };
}

function panel(name, fractions, values, behind, said, share) {
  const plot = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said, class: "curve" });
  plot.append(drawn("line", { class: "axis", x1: x(0), x2: x(1), y1: y(0), y2: y(0) }), drawn("line", { class: "axis", x1: x(0), x2: x(0), y1: y(0), y2: y(1) }));
  for (const value of [0, 1]) plot.append(drawn("text", { x: LEFT - 3, y: y(value) + (value ? 5 : 1), "aria-hidden": "true" }, String(value)));
  plot.append(path(fractions, behind, "random"), path(fractions, values, "line"));
  if (share !== null) plot.append(drawn("line", { class: "here", x1: x(share), x2: x(share), y1: y(0), y2: y(1) }));
  return make("figure", "panel", plot, make("figcaption", "", name));
}

// `erased` and `kept`: how much of the text is gone or left now, or null; a line stands there.
export function plots(curve, random, label, erased, kept) {
  const { deletion, insertion } = gains(curve, random);
  const ends = (values) => `from ${probability(values[0])} to ${probability(values.at(-1))}`;
  const fell = `Erasing from the highest score down, ${label} goes ${ends(curve.deletion)}; mean lead over random orders ${change(deletion, 2)}.`;
  const rose = `Putting back from the highest score down, ${label} goes ${ends(curve.insertion)}; mean lead over random orders ${change(insertion, 2)}.`;
  const box = make("div", "curves");
  box.append(
    panel("erasing its top", curve.fractions, curve.deletion, random.deletion, fell, erased),
    panel("putting back its top", curve.fractions, curve.insertion, random.insertion, rose, kept),
  );
  return box;
}
