// Elements and how numbers are written. Text only ever enters the page as text.

export const $ = (id) => document.getElementById(id);

export function make(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function drawn(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// What a sentence puts between backticks is code.
export function prose(sentence) {
  const parts = String(sentence).split(/`([^`]+)`/);
  return parts.map((part, place) => (place % 2 ? make("code", "", part) : part));
}

const minus = (text) => text.replace("-", "−");

export const probability = (value) => value.toFixed(value > 0 && value < 0.0005 ? 4 : 3);

export function change(value, digits = 3) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : minus(value > 0 ? `+${text}` : text);
}

export function score(value, signed) {
  const size = Math.abs(value);
  const text = size !== 0 && (size < 0.001 || size >= 1000) ? value.toExponential(1) : value.toPrecision(3);
  return minus(signed && value > 0 ? `+${text}` : text);
}

export function count(number, noun, plural = `${noun}s`) {
  const text = Number.isInteger(number) ? number.toLocaleString("en") : number.toFixed(1);
  return `${text} ${number === 1 ? noun : plural}`;
}

export function duration(seconds) {
  if (seconds < 0.9995) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export function listed(names, and = "and") {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} ${and} ${names.at(-1)}`;
}

// A place for a sentence that says what went wrong; empty it takes no room.
export function complain(place, sentence, again = null) {
  place.replaceChildren();
  place.hidden = !sentence;
  if (!sentence) return;
  place.append(...prose(sentence));
  if (!again) return;
  const button = make("button", "quiet", "Try again");
  button.type = "button";
  button.addEventListener("click", again);
  place.append(" ", button);
}

export function options(select, values, chosen) {
  select.replaceChildren(
    ...values.map(([value, name]) => {
      const option = make("option", "", name);
      option.value = value;
      return option;
    }),
  );
  select.value = chosen;
}
