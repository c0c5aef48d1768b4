// Work under way in the folders that were named: asked for while the page is looked at, and seldom.

import { get } from "./api.js";
import { report } from "./connection.js";
import { $, complain, count, duration, make } from "./dom.js";
import { state } from "./state.js";

const SOON = 4000; // milliseconds between two looks while something runs
const SELDOM = 30000;
let timer = null;

function figure(value) {
  if (value === null) return "undefined";
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(4)).toString().replace("-", "−");
}

function progress(one) {
  const track = make("div", "progress");
  const fill = make("span", "");
  track.setAttribute("role", "progressbar");
  track.setAttribute("aria-label", `${one.name}: done`);
  if (one.of) {
    fill.style.setProperty("--p", Math.min(1, one.done / one.of));
    Object.entries({ min: 0, max: one.of, now: one.done }).forEach(([name, value]) => track.setAttribute(`aria-value${name}`, value));
  } else {
    track.classList.add("endless");
  }
  track.append(fill);
  return track;
}

function folder(one) {
  const box = make("article", `folder ${one.state}`);
  box.append(make("h3", "", make("code", "", one.name), make("span", `state ${one.state}`, one.state), make("span", "soft small", one.kind)));
  const done = one.of ? `${one.done.toLocaleString("en")} of ${one.of.toLocaleString("en")} done` : `${one.done.toLocaleString("en")} done`;
  const left = one.state === "running" && typeof one.seconds_left === "number" ? `, about ${duration(one.seconds_left)} left` : "";
  box.append(progress(one), make("p", "small", done + left));
  const figures = Object.entries(one.figures ?? {});
  if (figures.length) box.append(make("dl", "figures", ...figures.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", figure(value))))));
  if (one.pages?.length) {
    const links = one.pages.map((page) => {
      const link = make("a", "", page.title);
      link.href = page.url.replace(/^\//, "");
      link.target = "_blank";
      link.rel = "noopener";
      return make("li", "", link);
    });
    box.append(make("ul", "links small", ...links));
  }
  return box;
}

export function rest() {
  clearTimeout(timer);
}

export async function drawWatch() {
  rest();
  if (state.view !== "watch" || document.hidden) return;
  let folders = [];
  try {
    folders = (await get("api/watch")).folders;
  } catch (error) {
    report(error, $("watch-error"), drawWatch, drawWatch);
    return;
  }
  const none = "No folder was named when the server was started. `veridical serve MODEL --watch DIR` shows here what runs in it.";
  complain($("watch-error"), folders.length ? "" : none);
  $("folders").replaceChildren(...folders.map(folder));
  const running = folders.filter((one) => one.state === "running").length;
  $("looked").textContent = folders.length ? `${count(running, "folder")} at work; looked at ${new Date().toLocaleTimeString("en", { hour12: false })}` : "";
  timer = setTimeout(drawWatch, running ? SOON : SELDOM);
}

document.addEventListener("visibilitychange", drawWatch);
