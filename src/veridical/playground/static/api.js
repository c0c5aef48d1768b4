// The server, asked in three ways: for an answer, for a stream of lines, for a file.

export class Refusal extends Error {
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }

  get passing() {
    return this.status === 429 || this.status === 503;
  }
}

export class Lost extends Error {}

// What a notebook frames at /embed sends no cookies: without the token behind the # nothing works there.
const FRAMED = location.pathname.endsWith("/embed");

// In a notebook the page stands in a foreign frame, where cookies do not work: the token comes after the # and stays in memory.
let bearer = "";
{
  const params = new URLSearchParams(location.hash.slice(1));
  if (params.has("token")) {
    bearer = params.get("token");
    params.delete("token");
    history.replaceState(null, "", `#${params}`);
  }
}

const NO_TOKEN =
  "This page has no valid token. Open the whole address that `veridical serve` printed in its terminal, the part from ?token= on included.";

async function refused(response) {
  let said = null;
  try {
    said = (await response.json()).error;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error; // what is no JSON has no sentence of ours in it
  }
  if (response.status === 401) return new Refusal("no_token", NO_TOKEN, 401);
  const sentence = said?.message ?? `The server answered ${response.status} without saying why.`;
  return new Refusal(said?.code ?? "unknown", sentence, response.status);
}

async function ask(path, body, signal) {
  const how = { signal, credentials: FRAMED ? "omit" : "same-origin", headers: { Accept: "application/json, application/x-ndjson, */*" } };
  if (bearer) how.headers.Authorization = `Bearer ${bearer}`;
  if (body !== undefined) {
    how.method = "POST";
    how.headers["Content-Type"] = "application/json";
    how.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, how);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Lost("The server does not answer.");
  }
  if (!response.ok) throw await refused(response);
  return response;
}

export const get = async (path, signal) => (await ask(path, undefined, signal)).json();
export const post = async (path, body, signal) => (await ask(path, body, signal)).json();

export async function file(path, body, signal) {
  const response = await ask(path, body, signal);
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  return { blob: await response.blob(), name: named?.[1] ?? null };
}

export async function* lines(path, body, signal) {
  const response = await ask(path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (error.name === "AbortError" || signal?.aborted) throw error;
      throw new Lost("The connection broke off in the middle of an answer.");
    }
    if (piece.done) break;
    const whole = (rest + piece.value).split("\n");
    rest = whole.pop();
    for (const line of whole) if (line.trim()) yield JSON.parse(line);
  }
  if (rest.trim()) yield JSON.parse(rest);
}

// A session is ours alone; crypto.randomUUID is missing where the page is not on this machine and not encrypted.
export const session = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
