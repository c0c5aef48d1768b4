// Taking it along: the address of what is shown, or a file of it.

import { file } from "./api.js";
import { report } from "./connection.js";
import { first, wanted } from "./desk.js";
import { $, complain, make } from "./dom.js";
import { remember, state } from "./state.js";

function tell(button, word) {
  const usual = button.dataset.usual ?? button.textContent;
  button.dataset.usual = usual;
  button.textContent = word;
  $("live").textContent = word;
  setTimeout(() => (button.textContent = usual), 1600);
}

// Without the token: a link is for those who may open the page anyway.
async function copy() {
  remember();
  const address = location.href;
  try {
    await navigator.clipboard.writeText(address);
    tell($("copy"), "Copied");
  } catch (error) {
    if (!(error instanceof TypeError) && error.name !== "NotAllowedError") throw error;
    const field = make("input", "address"); // the clipboard is closed to pages from other machines
    Object.assign(field, { value: address, readOnly: true });
    field.setAttribute("aria-label", "Address of what is shown");
    $("copy").after(field);
    field.select();
    field.addEventListener("blur", () => field.remove());
  }
}

async function save(button) {
  if (!state.text.trim() || !state.methods.length) {
    complain($("text-error"), "There is nothing to export yet: write a text and choose a method.");
    return;
  }
  const format = button.dataset.format;
  const asked = { ...wanted(first(), state), methods: state.methods, level: state.level, format };
  button.disabled = true;
  try {
    const { blob, name } = await file("api/export", asked);
    const link = make("a");
    link.href = URL.createObjectURL(blob);
    link.download = name ?? `veridical.${format}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    tell(button, "Saved");
  } catch (error) {
    report(error, $("text-error"), () => {}, () => save(button));
  } finally {
    button.disabled = false;
  }
}

export function listenShare() {
  $("copy").addEventListener("click", copy);
  for (const button of document.querySelectorAll("[data-format]")) button.addEventListener("click", () => save(button));
}
