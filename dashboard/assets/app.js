// Enhancements; every page works without JavaScript.
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

// another fetches a page and returns its element with an id, or nothing. It parses whole pages: no text becomes markup here.
const another = (method, address, id, body) => new Promise((resolve) => {
  const request = new XMLHttpRequest();
  request.open(method, address);
  request.responseType = "document";
  request.timeout = 15000;
  request.onload = () => resolve(request.status === 200 && request.response ? request.response.getElementById(id) : null);
  request.onerror = request.ontimeout = request.onabort = () => resolve(null);
  request.send(body);
});

// The position of the focus within a region, to restore it when the region is replaced.
const reachable = (region) => [...region.querySelectorAll("a[href], button, input, select, textarea, summary")];

const hidePlain = (region) => { // not needed with JavaScript
  for (const plain of region.querySelectorAll("[data-plain]")) plain.hidden = true;
};
hidePlain(document);

const replace = (region, fresh) => {
  const node = document.importNode(fresh, true);
  const at = reachable(region).indexOf(document.activeElement);
  region.replaceWith(node);
  hidePlain(node);
  if (at >= 0) (reachable(node)[at] ?? node.querySelector("textarea"))?.focus({ preventScroll: true });
  return node;
};

// A press is a click only if it ends on the element where it began. So a region stays while something is pressed, but not
// longer than 15 s, because the release may go to another window.
let pressed = 0;
for (const begin of ["pointerdown", "keydown"]) addEventListener(begin, () => { pressed = Date.now(); }, true);
for (const end of ["pointerup", "pointercancel", "keyup"]) addEventListener(end, () => { pressed = 0; }, true);

// A region with data-live is fetched again, from data-from or the page's own address, less and less often, for a quarter
// of an hour; with a number, at that interval in milliseconds. When no response comes, the link to reload is shown.
const follow = (region) => {
  const every = Number(region.dataset.live);
  const end = every ? Infinity : Date.now() + 15 * 60000;
  let wait = every || 500, silent = 0;
  const look = async () => {
    if (!document.hidden) {
      const fresh = await another("GET", region.dataset.from ?? location.href, region.id);
      silent = fresh ? 0 : silent + 1;
      if (fresh && fresh.outerHTML !== region.outerHTML && Date.now() - pressed > 15000) {
        region = replace(region, fresh);
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

// A text is measured while the user types.
let measuring, latest = 0;
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form?.dataset.measured) return;
  clearTimeout(measuring);
  measuring = setTimeout(async () => {
    const mine = ++latest;
    const fields = new URLSearchParams(new FormData(form));
    fields.set("do", "check");
    const fresh = await another("POST", form.action, form.dataset.measured, fields);
    const old = document.getElementById(form.dataset.measured);
    if (fresh && old && form.isConnected && mine === latest) replace(old, fresh);
  }, 200);
});

// A form is submitted once. A form or button with data-place replaces the region with that id; a response without the
// region is shown as a page.
document.addEventListener("submit", async (event) => {
  const form = event.target, button = event.submitter;
  if (form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "1";
  if ("file" in form.dataset) setTimeout(() => { delete form.dataset.sent; }, 2000); // the page stays
  const region = document.getElementById(button?.dataset.place ?? form.dataset.place);
  if (!region || form.dataset.failed) return;
  event.preventDefault();
  const fresh = await another("POST", form.action, region.id, new URLSearchParams(new FormData(form, button)));
  if (fresh) { replace(region, fresh); return; }
  form.dataset.failed = "1";
  delete form.dataset.sent;
  form.requestSubmit(button);
});
// The browser may return to the page as it was before the submission.
addEventListener("pageshow", (event) => {
  if (event.persisted && document.querySelector("form[data-sent]")) location.reload();
});

for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}
