// One method's copy of the text, its words coloured by their scores, and a legend that says what its colours mean.

import { make, score } from "./dom.js";
import { state } from "./state.js";
import { unread } from "./strip.js";
import { pieces, ranked, scoresOf, units } from "./text.js";

const FAINT = 0.04; // of the largest score; less is left without colour
const STRONG = 0.3;

export function highlight(one, answer) {
  const found = units(one.reading, state.level);
  const scores = scoresOf(found, state.level, answer);
  const largest = Math.max(...scores.map(Math.abs), 0);
  const line = make("p", "words");
  line.dir = "auto";
  for (const piece of pieces(state.text, found, one.reading.truncated)) {
    if (piece.number === null) {
      line.append(piece.unread ? unread(piece.text) : piece.text);
      continue;
    }
    const weight = largest ? scores[piece.number] / largest : 0;
    const plain = Math.abs(weight) < FAINT;
    const node = make(plain ? "span" : "mark", plain ? "" : !answer.signed ? "matters" : weight > 0 ? "for" : "against", piece.text);
    if (!plain && Math.abs(weight) >= STRONG) node.classList.add("strong");
    node.style.setProperty("--w", Math.abs(weight).toFixed(2));
    node.title = score(scores[piece.number], answer.signed);
    node.dataset.start = found[piece.number].start;
    node.dataset.end = found[piece.number].end;
    line.append(node);
  }
  return line;
}

// The same for those who hear the page: colours say nothing to them.
export function spoken(one, answer, most = 5) {
  const found = units(one.reading, state.level);
  const scores = scoresOf(found, state.level, answer);
  const letters = Array.from(state.text);
  const size = scores.map(Math.abs);
  const top = ranked(size).slice(0, most).filter((number) => size[number] > 0);
  const said = top.map((number) => `${letters.slice(found[number].start, found[number].end).join("")} ${score(scores[number], answer.signed)}`);
  return said.length ? `Largest scores: ${said.join(", ")}.` : "All scores are 0.";
}

function swatch(kind, ...words) {
  const mark = make("mark", kind, "word");
  mark.style.setProperty("--w", 1);
  mark.setAttribute("aria-hidden", "true");
  return make("span", "key", mark, " ", ...words);
}

// Only a signed method speaks for or against a class, and one that is not about a class says nothing of it.
export function legend(answer) {
  const line = make("p", "legend");
  const named = [make("b", "", answer.target_name), ...(answer.contrast_name ? [" rather than ", make("b", "", answer.contrast_name)] : [])];
  if (answer.signed) {
    line.append(swatch("for", "speaks for ", ...named), swatch("against strong", "against it"));
  } else if (answer.about_class) {
    line.append(swatch("matters", "matters to ", ...named, "; for or against is not said"));
  } else {
    line.append(swatch("matters", "matters; the same whichever class is asked about"));
  }
  return line;
}
