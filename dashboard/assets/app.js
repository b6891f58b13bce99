// What JavaScript adds to pages that work without it.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  const text = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  button.hidden = false;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = label; }, 2000);
    } catch {
      getSelection().selectAllChildren(text); // the browser does not let us: then by hand
    }
  });
}

// another asks for a page and gives what stands on it under an id, or nothing. Pages come parsed: no text becomes markup here.
const another = (method, address, id, body) => new Promise((resolve) => {
  const ask = new XMLHttpRequest();
  ask.open(method, address);
  ask.responseType = "document";
  ask.timeout = 15000;
  ask.onload = () => resolve(ask.status === 200 && ask.response ? ask.response.getElementById(id) : null);
  ask.onerror = ask.ontimeout = ask.onabort = () => resolve(null);
  ask.send(body);
});

// Where the keyboard is within a region, so that it can go on there when the region is replaced.
const reachable = (region) => [...region.querySelectorAll("a[href], button, input, select, textarea, summary")];

// A region with data-live is fetched again: less and less often, for a quarter of an hour; with a number, every so many
// milliseconds. When no answer comes any more, the link to reload is shown.
const follow = (region) => {
  const every = Number(region.dataset.live);
  const end = every ? Infinity : Date.now() + 15 * 60000;
  let wait = every || 500, silent = 0;
  const look = async () => {
    if (!document.hidden) {
      const fresh = await another("GET", location.href, region.id);
      silent = fresh ? 0 : silent + 1;
      if (fresh && fresh.outerHTML !== region.outerHTML) {
        const node = document.importNode(fresh, true);
        const at = reachable(region).indexOf(document.activeElement);
        region.replaceWith(node);
        region = node;
        reachable(region)[at]?.focus({ preventScroll: true });
        wait = 500;
      }
      wait = every || Math.min(wait * 1.3, 15000);
    }
    if (!("live" in region.dataset)) return;
    if (Date.now() < end && silent < 5) setTimeout(look, wait);
    else for (const plain of document.querySelectorAll("[data-plain]")) plain.hidden = false;
  };
  setTimeout(look, wait);
};
for (const region of document.querySelectorAll("[data-live]")) follow(region);

// A text is measured while it is written.
for (const form of document.querySelectorAll("form[data-measured]")) {
  let timer, latest = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++latest;
      const fields = new URLSearchParams(new FormData(form));
      fields.set("do", "check");
      const fresh = await another("POST", form.action, form.dataset.measured, fields);
      const old = document.getElementById(form.dataset.measured);
      if (fresh && old && mine === latest) old.replaceWith(document.importNode(fresh, true));
    }, 200);
  });
}
for (const plain of document.querySelectorAll("[data-plain]")) plain.hidden = true; // not needed with JavaScript

// One click on a form is enough.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "1";
  });
}
// The browser may go back to the page as it was before the form was sent.
addEventListener("pageshow", (event) => {
  if (event.persisted && document.querySelector("form[data-sent]")) location.reload();
});

for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}
