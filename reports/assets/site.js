"use strict";
/* The search of the first page: all words must be there, in a title or in what else is known of a page. */
(function () {
  const query = document.getElementById("query");
  if (!query) return;
  const most = 40;
  const entries = JSON.parse(document.getElementById("index").textContent).map((entry) => ({
    ...entry, text: `${entry.kind} ${entry.title} ${entry.words}`.toLowerCase(),
  }));
  const list = document.getElementById("hits");
  const told = document.getElementById("found");

  function show() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? entries.filter((entry) => words.every((word) => entry.text.includes(word))) : [];
    list.replaceChildren(...hits.slice(0, most).map((entry) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      const kind = document.createElement("small");
      link.href = entry.page;
      link.textContent = entry.title;
      kind.textContent = entry.kind;
      item.append(link, kind);
      return item;
    }));
    const more = hits.length > most ? `, of which ${most} are shown` : "";
    told.textContent = words.length ? `${hits.length} page${hits.length === 1 ? "" : "s"}${more}` : "";
  }
  query.disabled = false;
  query.addEventListener("input", show);
  show();
})();
