// Choosing methods: a box for each, with what it costs and what the audit says of it.

import { badge } from "./cards.js";
import { desk } from "./desk.js";
import { count, make } from "./dom.js";
import { state } from "./state.js";

function choice(known, full, changed) {
  const box = make("input");
  box.type = "checkbox";
  box.checked = state.methods.includes(known.name);
  box.disabled = full && !box.checked;
  box.addEventListener("change", () => {
    const wanted = new Set(state.methods);
    if (box.checked) wanted.add(known.name);
    else wanted.delete(known.name);
    state.methods = inOrder(wanted);
    state.none = !state.methods.length;
    changed();
  });
  const price = known.passes === null ? null : make("span", "soft price", count(Math.round(known.passes * 10) / 10, "pass", "passes"));
  const name = make("span", "which", make("code", "", known.name), badge(known.audit), price);
  return make("label", "choice", box, make("span", "", name, make("span", "summary soft", known.summary ?? "")));
}

// What the audit says to believe comes first, the other known methods in the server's order, cheap first; specs of the
// user's own after them.
function inOrder(wanted) {
  const believed = (name) => (desk.methods.get(name).audit?.standing === "believe" ? 0 : 1);
  const known = [...desk.methods.keys()].filter((name) => wanted.has(name)).sort((a, b) => believed(a) - believed(b));
  return [...known, ...[...wanted].filter((name) => !desk.methods.has(name))];
}

export function drawPicker(title, root, changed) {
  const most = desk.info.limits?.methods ?? Infinity;
  const full = state.methods.length >= most;
  const all = [...desk.methods.values()];
  title.textContent = `Methods: ${state.methods.length} of ${all.length} chosen`;
  const group = (name, some) => {
    if (!some.length) return null;
    return make("fieldset", "group", make("legend", "", name), make("div", "grid", ...some.map((known) => choice(known, full, changed))));
  };
  const focused = document.activeElement?.closest?.(".choice")?.querySelector("code")?.textContent;
  root.replaceChildren(
    ...[
      full ? make("p", "soft small", `${count(most, "method")} at once are the most this server takes; take one away to add another.`) : null,
      group("A few passes", all.filter((known) => known.cheap)),
      group("More passes", all.filter((known) => !known.cheap)),
      make("p", "soft small", "Passes are forward passes through the model, counted for a text of 30 tokens."),
    ].filter(Boolean),
  );
  for (const label of root.querySelectorAll(".choice")) {
    if (focused && label.querySelector("code").textContent === focused) label.querySelector("input").focus();
  }
}
