// Whether the server answers. When it does not, that is said and it is asked again, ever more seldom.

import { Lost, Refusal, get } from "./api.js";
import { $, complain } from "./dom.js";

const FIRST = 1; // seconds until it is asked again
const LONGEST = 30;

let wait = 0; // seconds; 0 while the server answers
let timer = null;

export const cut = () => wait > 0;

function countdown(left, back) {
  if (left > 0) {
    complain($("banner"), `The server does not answer. Is \`veridical serve\` still running? Asked again in ${left} s.`, () => again(back));
    timer = setTimeout(() => countdown(left - 1, back), 1000);
  } else {
    again(back);
  }
}

async function again(back) {
  clearTimeout(timer);
  try {
    await get("api/info");
  } catch (error) {
    if (error instanceof Lost) {
      wait = Math.min(LONGEST, wait * 2);
      countdown(wait, back);
      return;
    }
    wait = 0;
    report(error, $("banner"), back);
    return;
  }
  wait = 0;
  complain($("banner"), "");
  back();
}

// Says an error where it belongs; true if there is something to be said.
export function report(error, place, back, retry = null) {
  if (error.name === "AbortError") return false;
  if (error instanceof Lost) {
    if (!wait) {
      wait = FIRST;
      countdown(wait, back);
    }
    return true;
  }
  if (!(error instanceof Refusal)) throw error;
  if (error.status === 401) complain($("banner"), error.message);
  else complain(place, error.message, error.passing ? retry : null);
  return true;
}
