// What is chosen, and how it stands in the address: after the #, so that it never reaches the server.

export const state = {
  view: "play", // play, examples, watch
  model: "",
  other: "", // a second model beside it, or "none"; empty where only one is served
  text: "",
  context: "",
  methods: [],
  none: false, // whether it was chosen that there are none
  level: "word",
  operator: "",
  target: "predicted",
  contrast: "", // the class that it is explained against, or "second", the likeliest other; empty: none
  mode: "erase", // or keep
  marked: new Set(), // indices of the first model's tokens that are erased, or kept
  source: "", // of the examples: data or audit
  split: "",
  sort: "first",
  offset: 0,
};

const KEYS = {
  view: "v", model: "m", other: "m2", text: "t", context: "c", level: "l", operator: "o",
  target: "y", contrast: "z", mode: "k", source: "d", split: "s", sort: "r", offset: "n",
};
const USUAL = { view: "play", other: "", context: "", level: "word", target: "predicted", contrast: "", mode: "erase", source: "", split: "", sort: "first", offset: 0 };

export function fragment(changes = {}) {
  const chosen = { ...state, ...changes };
  const params = new URLSearchParams();
  for (const [name, key] of Object.entries(KEYS)) {
    if (chosen[name] !== "" && chosen[name] !== USUAL[name]) params.set(key, chosen[name]);
  }
  if (chosen.methods.length || chosen.none) params.set("x", chosen.methods.join(","));
  if (chosen.marked.size) params.set("e", [...chosen.marked].sort((a, b) => a - b).join(","));
  return `#${params}`;
}

// Whatever an old or a mangled address holds, only what is offered is taken.
export function recall(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ""));
  const found = {};
  for (const [name, key] of Object.entries(KEYS)) {
    if (params.has(key)) found[name] = params.get(key);
    else if (name in USUAL && name !== "other") found[name] = USUAL[name];
  }
  found.offset = Math.max(0, Math.trunc(Number(found.offset)) || 0);
  if (params.has("x")) found.methods = params.get("x").split(",").filter(Boolean);
  found.none = params.get("x") === "";
  const places = (params.get("e") ?? "").split(",").filter((part) => /^\d+$/.test(part)).map(Number);
  found.marked = new Set(places);
  return found;
}

export function remember() {
  try {
    history.replaceState(null, "", fragment());
  } catch (error) {
    if (error.name !== "SecurityError") throw error; // inside a sandboxed frame the address is not ours to change
  }
}

// What is marked, and what that means: an answer about other marks says nothing of these.
export const marksOf = (held) => (held.marked.size ? JSON.stringify([held.mode, held.operator, [...held.marked].sort((a, b) => a - b)]) : "");
