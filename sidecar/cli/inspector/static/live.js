// Shows what is new once the conversation has changed, without moving what one reads or types.
"use strict";

const KEY = "a, button, summary, input, select";

function placeOf(element) {
  return element?.matches?.(KEY) ? [...document.querySelectorAll(KEY)].indexOf(element) : -1;
}

async function look() {
  const { state, version } = document.body.dataset;
  if (state === undefined || document.hidden) return;
  const answer = await (await fetch(state)).json();
  if (answer.version === version || document.activeElement?.matches("input, select")) return;
  const text = await (await fetch(location.href)).text();
  const page = new DOMParser().parseFromString(text, "text/html");
  const main = page.querySelector("main");
  if (main === null) return;
  const focused = placeOf(document.activeElement);
  const open = [...document.querySelectorAll("main details")].map((one) => one.open);
  document.querySelector("main").replaceWith(document.adoptNode(main));
  document.querySelectorAll("main details").forEach((one, at) => (one.open = open[at] ?? false));
  if (focused >= 0) document.querySelectorAll(KEY)[focused]?.focus({ preventScroll: true });
  for (const name of ["state", "version"]) {
    if (page.body.dataset[name] === undefined) delete document.body.dataset[name];
    else document.body.dataset[name] = page.body.dataset[name];
  }
  document.getElementById("said").textContent = "The page has been updated.";
}

async function follow() {
  try {
    await look();
  } catch {
    // The inspector has ended; what is shown stays.
  }
  setTimeout(follow, 1500);
}

follow();
