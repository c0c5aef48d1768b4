// Marking words, by mouse, touch or keyboard, wherever the text stands. What is marked is kept as tokens of the first model;
// every other copy of the text follows by its characters.

import { first } from "./desk.js";
import { state } from "./state.js";

let painting = null; // true or false while a drag sets or clears marks
let pressed = false; // a press has acted already, and the click that follows it must not

function tokensIn(start, end) {
  const reading = first()?.reading;
  return reading ? reading.tokens.filter((token) => token.free && token.start < end && start < token.end).map((token) => token.index) : [];
}

export const isMarked = (start, end) => tokensIn(start, end).some((place) => state.marked.has(place));

export function mark(start, end, on) {
  for (const place of tokensIn(start, end)) {
    if (on) state.marked.add(place);
    else state.marked.delete(place);
  }
}

export function markOnly(spans) {
  state.marked.clear();
  for (const { start, end } of spans) mark(start, end, true);
}

const spanOf = (node) => [Number(node.dataset.start), Number(node.dataset.end)];

export function paint(root) {
  const reading = first()?.reading;
  if (!reading) return;
  const spans = reading.tokens.filter((token) => state.marked.has(token.index));
  for (const node of root.querySelectorAll("[data-start]")) {
    const [start, end] = spanOf(node);
    const on = spans.some((span) => span.start < end && start < span.end);
    node.classList.toggle("gone", state.marked.size > 0 && (state.mode === "erase" ? on : !on));
    node.classList.toggle("kept", state.mode === "keep" && on);
    if (node.tagName === "BUTTON") node.setAttribute("aria-pressed", String(on));
  }
}

function act(node, on, changed) {
  mark(...spanOf(node), on);
  changed();
}

export function listen(root, changed) {
  root.addEventListener("pointerdown", (event) => {
    const node = event.target.closest?.("[data-start]");
    if (!node || event.button !== 0 || event.pointerType === "touch") return; // a finger may be about to scroll
    event.preventDefault();
    if (node.tagName === "BUTTON") node.focus({ preventScroll: true });
    painting = !isMarked(...spanOf(node));
    pressed = true;
    act(node, painting, changed);
  });
  root.addEventListener("pointerover", (event) => {
    const node = event.target.closest?.("[data-start]");
    if (!node || painting === null || isMarked(...spanOf(node)) === painting) return;
    act(node, painting, changed);
  });
  root.addEventListener("click", (event) => {
    const node = event.target.closest?.("[data-start]");
    if (!node) return;
    if (pressed) pressed = false;
    else act(node, !isMarked(...spanOf(node)), changed);
  });
}

window.addEventListener("pointerup", () => {
  painting = null;
  setTimeout(() => (pressed = false)); // a drag that ended elsewhere has no click
});
