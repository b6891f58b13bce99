// Keeps the page of the links true while it is open.
"use strict";

{
  const board = document.getElementById("links");
  const live = document.getElementById("pulse");
  const at = document.getElementById("at");
  const say = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
  const show = (word) => {
    live.hidden = false;
    live.className = "pulse " + word;
    say(live, live.getAttribute("data-text-" + word));
    document.getElementById("reload").hidden = word === "live";
  };

  let heard = Date.now();
  let stream;
  let over = false;

  const open = () => {
    stream = new EventSource(board.dataset.stream);
    stream.addEventListener("links", (event) => {
      heard = Date.now();
      tell(JSON.parse(event.data));
      show("live");
    });
    stream.addEventListener("end", () => { over = true; stream.close(); show("ended"); });
    stream.addEventListener("error", () => {
      if (over || stream.readyState !== EventSource.CLOSED) return; // it tries again by itself
      setTimeout(open, 5000 + Math.random() * 5000);
    });
  };

  // What nobody confirms any more is said to be old.
  setInterval(() => { if (!over && Date.now() - heard > 12000) show("stale"); }, 1000);

  const tell = (now) => {
    say(at, now.at);
    const names = now.carriers.flatMap((carrier) => carrier.links.map((link) => link.name)).sort();
    const shown = [...board.querySelectorAll("[data-link]")].map((row) => row.dataset.link).sort();
    const carriers = now.carriers.map((carrier) => carrier.name).sort();
    const sections = [...board.querySelectorAll("[data-carrier]")].map((section) => section.dataset.carrier).sort();
    if (names.join("\n") !== shown.join("\n") || carriers.join("\n") !== sections.join("\n")) {
      over = true;
      stream.close();
      location.reload(); // another list of links: another page
      return;
    }
    document.getElementById("verdict").className = "verdict " + now.kind;
    say(document.getElementById("verdict-title"), now.title);
    const sick = document.getElementById("sick");
    const list = now.sick.map((link) => {
      const item = document.createElement("li");
      const name = document.createElement("strong");
      const why = document.createElement("span");
      item.className = link.kind;
      name.textContent = link.name;
      why.textContent = link.why;
      item.append(name, " ", why);
      return item;
    });
    if (sick.textContent !== list.map((item) => item.textContent).join("")) sick.replaceChildren(...list);
    sick.hidden = list.length === 0;
    for (const carrier of now.carriers) {
      const section = [...board.querySelectorAll("[data-carrier]")].find((s) => s.dataset.carrier === carrier.name);
      const waits = section.querySelector("[data-cell=waiting]");
      say(waits, carrier.waiting);
      waits.className = "waits " + carrier.kind;
      for (const link of carrier.links) {
        const row = [...section.querySelectorAll("[data-link]")].find((r) => r.dataset.link === link.name);
        row.className = "link " + link.kind;
        for (const cell of row.querySelectorAll("[data-cell]")) say(cell, link[cell.dataset.cell]);
        row.querySelector(".badge").className = "badge " + link.kind;
        row.querySelector("meter").value = link.full;
        row.querySelector(".fault").hidden = link.error === "";
        row.querySelector("[data-when=paused]").hidden = !link.paused;
        row.querySelector("[data-when=running]").hidden = link.paused;
      }
    }
  };

  open();
  addEventListener("pagehide", () => stream.close());
  addEventListener("pageshow", (event) => { if (event.persisted && !over) open(); });
}
