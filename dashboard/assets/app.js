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

// What is still going on is looked at again, less and less often, for a quarter of an hour.
const follow = (region) => {
  const end = Date.now() + 15 * 60000;
  let wait = 500;
  const look = async () => {
    if (!document.hidden) {
      const fresh = await another("GET", location.href, region.id);
      if (fresh && fresh.outerHTML !== region.outerHTML) {
        const node = document.importNode(fresh, true);
        region.replaceWith(node);
        region = node;
        wait = 500;
      }
      wait = Math.min(wait * 1.3, 15000);
    }
    if ("live" in region.dataset && Date.now() < end) setTimeout(look, wait);
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
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// What goes on behind a page: looked at every second, and the page again at its end.
for (const part of document.querySelectorAll("[data-progress]")) {
  const bar = part.querySelector("progress");
  const text = part.querySelector("[data-text]");
  for (const link of part.querySelectorAll("[data-without]")) link.hidden = true;
  const look = async () => {
    try {
      const answer = await fetch(part.dataset.progress, { redirect: "error" });
      if (!answer.ok) throw new Error(String(answer.status));
      const now = await answer.json();
      if (now.done) { location.reload(); return; }
      bar.max = now.max;
      bar.value = now.value;
      text.textContent = now.text;
    } catch {
      for (const link of part.querySelectorAll("[data-without]")) link.hidden = false;
      setTimeout(look, 5000);
      return;
    }
    setTimeout(look, 1000);
  };
  setTimeout(look, 1000);
}

for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}

// A campaign's counts as they change; without JavaScript one reloads.
for (const box of document.querySelectorAll("[data-campaign]")) {
  const reload = box.querySelector("[data-reload]");
  let pause = 1000;
  const look = async () => {
    if (document.hidden) { setTimeout(look, pause); return; }
    try {
      const answer = await fetch(box.dataset.campaign, {headers: {Accept: "application/json"}, redirect: "error"});
      if (!answer.ok) throw new Error(String(answer.status));
      const counts = await answer.json();
      for (const cell of box.querySelectorAll("[data-count]")) cell.textContent = counts[cell.dataset.count];
      box.querySelector("[data-value]").value = counts.finished;
      const says = box.querySelector("[data-says]");
      if (says.textContent !== counts.says) says.textContent = counts.says;
      if (counts.done) { reload.hidden = true; return; }
      pause = Math.min(pause * 1.2, 10000);
    } catch {
      pause = Math.min(pause * 2, 30000); // the button is there meanwhile
    }
    setTimeout(look, pause);
  };
  setTimeout(look, pause);
}
