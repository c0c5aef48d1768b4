"use strict";
// Three independent things: one method stands out everywhere, methods reorder by a metric, and the browser of texts.
// Text of the data reaches the page by textContent only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function make(name, className, text) {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  // -- one method stands out everywhere ---------------------------------------------------------------------

  let lit = null;
  function light(m) {
    if (m === lit) return;
    lit = m;
    document.body.classList.toggle("lit", m !== null);
    for (const node of all("[data-m]")) node.classList.toggle("on", node.dataset.m === m);
  }
  const methodOf = (event) => event.target.closest?.("[data-m]")?.dataset.m ?? null;
  document.addEventListener("pointerover", (event) => light(methodOf(event)));
  document.addEventListener("focusin", (event) => light(methodOf(event)));
  document.addEventListener("focusout", () => light(null));
  for (const node of all("[data-focus]")) node.tabIndex = 0;

  // -- methods in another order -----------------------------------------------------------------------------

  const order = $("order");
  order.closest("[hidden]").hidden = false;
  order.addEventListener("change", () => {
    const place = new Map(data.orders[Number(order.value)].map((m, k) => [String(m), k]));
    for (const group of all(".by-method")) {
      const rows = [...group.children].sort((a, b) => place.get(a.dataset.m) - place.get(b.dataset.m));
      group.append(...rows);
      group.classList.toggle("reordered", order.value !== "0"); // then the lines between groups mean nothing
    }
  });

  // -- both numbers of a cell of the heat maps --------------------------------------------------------------

  for (const cell of all("svg.heat .cell")) {
    const told = cell.closest(".pair").nextElementSibling;
    const tell = () => {
      told.textContent = cell.querySelector("title").textContent;
      for (const other of all(".cell", cell.closest(".pair"))) {
        other.classList.toggle("on", other.dataset.pair === cell.dataset.pair);
      }
    };
    cell.addEventListener("pointerenter", tell);
    cell.addEventListener("click", tell);
  }

  // -- on paper nothing is closed (the style sheet says so too, which not every browser understands) ------------

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const node of opened) node.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const node of opened) node.open = false;
  });

  // -- the browser of texts ---------------------------------------------------------------------------------

  if (!data.examples.length) return;
  const FAINT = 0.08; // weights below this are left bare
  const CLASSES = 8; // most probabilities shown
  const PRINTED = 6; // texts
  const state = { text: 0, share: 100, show: "all", corpus: "" };
  const controls = { share: $("share"), show: $("show"), corpus: $("corpus") };

  function chosen() {
    const kept = data.examples.filter(
      (one) =>
        (state.corpus === "" || String(one.corpus) === state.corpus) &&
        (state.show !== "right" || one.right === true) &&
        (state.show !== "wrong" || one.right === false),
    );
    if (state.show === "disagreeing") kept.sort((a, b) => (b.disagreement ?? -1) - (a.disagreement ?? -1));
    return kept;
  }

  // Which units are shown: the highest scores first, ties in reading order, as the metrics count them.
  function top(scores, share) {
    const count = share > 0 ? Math.max(1, Math.ceil((share * scores.length) / 100)) : 0;
    const ranked = scores.map((_, k) => k).sort((a, b) => scores[b] - scores[a] || a - b);
    return new Set(ranked.slice(0, count));
  }

  const digits = (value, signed) =>
    (signed && value > 0 ? "+" : "") + Number(value.toPrecision(3)).toString().replace("-", "−");

  // The text as written, cut at units and rationales; offsets count code points, as Python does.
  function words(one, scores, power, signed) {
    const letters = Array.from(one.text);
    const shown = top(scores, state.share);
    const largest = Math.max(...scores.map(Math.abs), 0) || 1;
    const unitAt = new Array(letters.length).fill(-1);
    const marked = new Array(letters.length).fill(false);
    for (let k = 0; k < scores.length; k++) unitAt.fill(k, one.units[2 * k], one.units[2 * k + 1]);
    for (let k = 0; k < one.rationale.length; k += 2) marked.fill(true, one.rationale[k], one.rationale[k + 1]);
    const read = one.units.length ? one.units[one.units.length - 1] : 0;
    const line = make("p", "words");
    line.dir = "auto";
    for (let start = 0; start < letters.length; ) {
      let end = start + 1;
      const same = (k) => unitAt[k] === unitAt[start] && marked[k] === marked[start] && k < read === start < read;
      while (end < letters.length && same(end)) end++;
      const text = letters.slice(start, end).join("");
      const unit = unitAt[start];
      let weight = unit < 0 ? 0 : scores[unit] / largest;
      // Of a chosen share every unit is seen, however small next to the largest.
      if (state.share < 100 && Math.abs(weight) < 1.5 * FAINT) weight = Math.sign(weight) * 1.5 * FAINT;
      let node = document.createTextNode(text);
      if (shown.has(unit) && Math.abs(weight) >= FAINT) {
        node = make("mark", !signed ? "matters" : weight > 0 ? "for" : "against", text);
        if (Math.abs(weight) >= 0.3) node.classList.add("strong");
        node.style.setProperty("--w", Math.abs(weight).toFixed(2));
        node.title = digits(scores[unit] * 10 ** power, signed);
      } else if (start >= read && text.trim()) {
        node = make("span", "unread", text);
        node.title = "not read by the model";
      }
      if (marked[start]) {
        const under = make("u");
        under.append(node);
        node = under;
      }
      line.append(node);
      start = end;
    }
    return line;
  }

  function head(one) {
    const line = make("div", "head");
    line.append(make("h3", "", one.id), make("span", "small soft", data.corpora[one.corpus]));
    const verdict = one.right === null ? "" : one.right ? "✓ right" : "✗ wrong";
    if (verdict) line.append(make("strong", "small " + (one.right ? "ok" : "bad"), verdict));
    const said = make("span", "small");
    said.append("predicted ", make("b", "", one.predicted));
    if (one.label !== null) said.append(", labelled ", make("b", "", one.label));
    line.append(said);
    if (one.disagreement !== null) {
      line.append(make("span", "small soft", `disagreement of the methods ${one.disagreement.toFixed(2)}`));
    }
    return line;
  }

  function classes(one) {
    const list = make("ul", "classes");
    const likely = one.probabilities.map((_, k) => k).sort((a, b) => one.probabilities[b] - one.probabilities[a]);
    for (const k of likely.slice(0, CLASSES).sort((a, b) => a - b)) {
      const item = make("li");
      const track = make("span", "track");
      const fill = make("span", "fill");
      fill.style.setProperty("--p", one.probabilities[k]);
      track.append(fill);
      item.append(make("span", "", data.labels[k]), track, make("span", "n", one.probabilities[k].toFixed(3)));
      list.append(item);
    }
    if (likely.length > CLASSES) list.append(make("li", "soft", `and ${likely.length - CLASSES} more`));
    return list;
  }

  // One text with what every method says of it.
  function fill(card, one) {
    card.append(head(one), classes(one));
    if (one.context !== null) {
      const aside = make("p", "context small");
      aside.dir = "auto";
      aside.append(make("strong", "", "context"), " (read by the model, not explained): ", one.context);
      card.append(aside);
    }
    const grid = make("div", "methods");
    for (const [m, target, power, scores] of one.explanations) {
      const box = make("div", "method");
      box.dataset.m = m;
      const name = make("p", "name");
      name.append(make("code", "", data.methods[m]));
      if (target !== one.predicted) name.append(make("span", "soft", ` explains ${target}`));
      box.append(name, words(one, scores, power, data.signed[m]));
      grid.append(box);
    }
    card.append(grid);
  }

  function draw() {
    const kept = chosen();
    const card = $("card");
    state.text = Math.min(Math.max(state.text, 0), Math.max(kept.length - 1, 0));
    $("where").textContent = kept.length ? `${state.text + 1} of ${kept.length}` : "none";
    $("shared").textContent = `${state.share}%`;
    $("previous").disabled = state.text <= 0;
    $("next").disabled = state.text >= kept.length - 1;
    for (const [name, control] of Object.entries(controls)) control.value = state[name];
    card.replaceChildren();
    if (!kept.length) {
      card.append(make("p", "soft", "No text fits this choice."));
      return;
    }
    fill(card, kept[state.text]);
  }

  function remember() {
    const params = new URLSearchParams({ text: state.text + 1, share: state.share, show: state.show, corpus: state.corpus });
    try {
      history.replaceState(null, "", "#" + params);
    } catch (error) {
      if (error.name !== "SecurityError") throw error; // inside a sandboxed frame the address is not ours to change
    }
  }

  function recall() {
    const params = new URLSearchParams(location.hash.slice(1));
    if (!params.has("text")) return;
    const [text, share] = [Number(params.get("text")), Number(params.get("share") ?? 100)];
    state.text = Number.isInteger(text) ? text - 1 : 0;
    state.share = Number.isFinite(share) ? Math.min(100, Math.max(0, Math.round(share))) : 100;
    const offered = (select, value) => [...select.options].some((option) => option.value === value);
    state.show = offered(controls.show, params.get("show")) ? params.get("show") : "all";
    state.corpus = offered(controls.corpus, params.get("corpus")) ? params.get("corpus") : "";
    draw();
  }

  function move(step) {
    state.text += step;
    draw();
    remember();
  }

  $("previous").addEventListener("click", () => move(-1));
  $("next").addEventListener("click", () => move(1));
  for (const [name, control] of Object.entries(controls)) {
    control.addEventListener("input", () => {
      if (name !== "share") state.text = 0;
      state[name] = name === "share" ? Number(control.value) : control.value;
      draw();
      remember();
    });
  }
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest?.("input, select, textarea, .scroll")) return; // they have a use of their own for arrows
    event.preventDefault();
    move(step);
  });
  // On paper nothing can be turned over: the texts after the shown one are printed with it.
  window.addEventListener("beforeprint", () => {
    const sheets = chosen().slice(state.text + 1, state.text + PRINTED).map((one) => {
      const sheet = make("article", "text");
      fill(sheet, one);
      return sheet;
    });
    $("paper").replaceChildren(...sheets);
    $("paper").hidden = false;
  });
  window.addEventListener("afterprint", () => {
    $("paper").replaceChildren();
    $("paper").hidden = true;
  });
  window.addEventListener("hashchange", recall);
  $("browser").hidden = false;
  draw();
  recall();
})();
