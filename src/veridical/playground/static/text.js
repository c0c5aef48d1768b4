// A text as the model reads it. The server counts characters, JavaScript counts halves of some: texts are cut by character.

export const characters = (text) => Array.from(text);

// What can be clicked: the tokens or words that may be erased. Pieces of one character (an emoji in bytes) are one unit.
export function units(reading, level) {
  const free = new Set(reading.tokens.filter((token) => token.free).map((token) => token.index));
  const given =
    level === "word"
      ? reading.words.map((word) => ({ ...word, tokens: word.tokens.filter((place) => free.has(place)), place: word.index }))
      : reading.tokens.filter((token) => token.free).map((token) => ({ ...token, tokens: [token.index], place: token.index }));
  const found = [];
  for (const one of given) {
    if (!one.tokens.length) continue;
    const last = found.at(-1);
    if (last && one.start < last.end) {
      last.tokens.push(...one.tokens);
      last.places.push(one.place);
      last.end = Math.max(last.end, one.end);
    } else {
      found.push({ start: one.start, end: one.end, tokens: [...one.tokens], places: [one.place] });
    }
  }
  return found;
}

// The score of every unit, of an answer of /api/explain.
export function scoresOf(found, level, answer) {
  const given = level === "word" ? answer.word_scores : answer.scores;
  return found.map((unit) => unit.places.reduce((sum, place) => sum + (given[place] ?? 0), 0));
}

// The text in pieces: units by their number, and what stands between them.
export function pieces(text, found, truncated) {
  const letters = characters(text);
  const all = [];
  let at = 0;
  found.forEach((unit, number) => {
    if (unit.start > at) all.push({ text: letters.slice(at, unit.start).join(""), number: null, unread: false });
    all.push({ text: letters.slice(unit.start, unit.end).join(""), number, unread: false });
    at = unit.end;
  });
  if (at < letters.length) all.push({ text: letters.slice(at).join(""), number: null, unread: truncated });
  return all;
}

// The units' numbers, the highest score first, ties by position.
export const ranked = (scores) => scores.map((_, number) => number).sort((a, b) => scores[b] - scores[a] || a - b);

// The tokens of another model's reading that touch what is marked in the first one's.
export function carried(marked, first, other) {
  if (first === other) return [...marked].sort((a, b) => a - b);
  const spans = first.tokens.filter((token) => marked.has(token.index));
  const touched = (token) => spans.some((span) => span.start < token.end && token.start < span.end);
  return other.tokens.filter((token) => token.free && touched(token)).map((token) => token.index);
}
