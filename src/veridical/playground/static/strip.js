// The text whose words can be taken away: a row of buttons of which one has the keyboard, moved on by the arrows.

import { make } from "./dom.js";
import { isMarked, listen, mark, paint } from "./marks.js";
import { state } from "./state.js";
import { pieces, units } from "./text.js";

let current = 0;

export function drawStrip(root, reading) {
  const found = units(reading, state.level);
  current = Math.min(current, Math.max(0, found.length - 1));
  const nodes = pieces(state.text, found, reading.truncated).map((piece) => {
    if (piece.number === null) return piece.unread ? unread(piece.text) : document.createTextNode(piece.text);
    const button = make("button", "unit", piece.text);
    button.type = "button";
    button.tabIndex = piece.number === current ? 0 : -1;
    button.dataset.start = found[piece.number].start;
    button.dataset.end = found[piece.number].end;
    return button;
  });
  const focused = root.contains(document.activeElement);
  root.replaceChildren(...nodes);
  paint(root);
  if (focused) root.querySelector('[tabindex="0"]')?.focus();
}

export function unread(text) {
  const node = make("span", "unread", text);
  node.title = "not read by the model";
  return node;
}

function move(root, to, extend) {
  const buttons = [...root.querySelectorAll(".unit")];
  if (!buttons.length) return;
  const from = buttons[current];
  current = Math.min(Math.max(to, 0), buttons.length - 1);
  if (extend) {
    const on = isMarked(Number(from.dataset.start), Number(from.dataset.end));
    mark(Number(buttons[current].dataset.start), Number(buttons[current].dataset.end), on);
  }
  buttons.forEach((button, number) => (button.tabIndex = number === current ? 0 : -1));
  buttons[current].focus();
}

export function listenStrip(root, changed) {
  listen(root, changed);
  root.addEventListener("focusin", (event) => {
    const number = [...root.querySelectorAll(".unit")].indexOf(event.target);
    if (number >= 0) current = number;
  });
  root.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const last = root.querySelectorAll(".unit").length - 1;
    const to = { ArrowLeft: current - 1, ArrowUp: current - 1, ArrowRight: current + 1, ArrowDown: current + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(root, to, event.shiftKey);
    if (event.shiftKey) changed();
  });
}
