// What lies on the desk: the models that are shown, how each reads the text, and what came back so far.

export const desk = {
  info: null, // of /api/info
  methods: new Map(), // name -> what /api/methods says of it, for the first model
  sides: [], // one per model shown
};

export function side(model, key) {
  return { key, model, reading: null, whole: null, now: null, of: "", answers: new Map(), curves: new Map(), random: null, agreement: new Map() };
}

export const first = () => desk.sides[0];

// What a request about the text on the desk always says.
export function question(one, state) {
  const asked = { model: one.model.name, text: state.text };
  if (one.model.pairs && state.context) asked.context = state.context;
  return asked;
}

// The same, with what is explained of it.
export function wanted(one, state) {
  const asked = { ...question(one, state), target: targetOf(one, state) };
  const against = state.contrast;
  if (against && asked.target === state.target && (against === "second" || one.model.labels.includes(against))) asked.contrast = against;
  return asked;
}

// A class that only the other model has cannot be explained of this one: its prediction is, and that is said.
export const targetOf = (one, state) => (one.model.labels.includes(state.target) ? state.target : "predicted");

export function lacking(one, state) {
  if (state.target !== targetOf(one, state)) return `This model has no class ${state.target}: its predicted class is explained.`;
  const against = state.contrast;
  return !against || against === "second" || one.model.labels.includes(against) ? null : `This model has no class ${against}: it is explained against no other.`;
}

// The class that is explained, as the answers name it: the one asked for, or the one a first answer explained.
export function explained(one, state) {
  if (targetOf(one, state) !== "predicted") return state.target;
  for (const answer of one.answers.values()) if (answer.target_name) return answer.target_name;
  return [one.whole?.label ?? []].flat()[0] ?? null;
}

export const modelOf = (name) => desk.info.models.find((model) => model.name === name);
