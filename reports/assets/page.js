"use strict";
/* The table of all results: filter, sort, link to a case. Only text is ever put into the page, never markup, so nothing
   that a runtime printed can become an element. The address holds the view, so that it can be linked to. */
(function () {
  const byId = (id) => document.getElementById(id);
  const source = byId("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const AT_ONCE = 100;

  /* ---- Rows, in the order of table.py ---- */
  const rows = data.rows.map(([id, target, op, type, verdict, expected, groups, clauses, command, message, ms, worst,
    where, remarks, findings]) => {
    const [tone, failing, rank] = data.verdicts[verdict];
    return {
      case: id, target, op, type, verdict, ms, worst, where, failing, remarks, findings,
      groups: data.shared[groups], clauses: data.shared[clauses], message: data.shared[message],
      command: data.shared[command].replaceAll("{}", id), known: failing && expected,
      tone: failing && expected ? "known" : tone,
      rank: (failing ? (expected ? 1000 : 0) : 2000) + rank, // failures first, those on no list before the others
    };
  });
  const said = (row) => row.message || row.remarks.join(", ");
  const verdictText = (row) => row.verdict + (row.known ? ", known" : "");

  function make(tag, className, ...content) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...content);
    return element;
  }
  function link(href, text) {
    const element = make("a", "", text);
    element.href = href;
    return element;
  }
  const chip = (row) => make("span", `chip tone-${row.tone}`, make("span", "", verdictText(row)));

  /* ---- Filters ---- */
  const form = byId("filters"), table = byId("table"), body = table.tBodies[0], more = byId("more");
  const natural = new Intl.Collator("en", { numeric: true }), number = new Intl.NumberFormat("en");
  const distinct = (values) => [...new Set(values)].sort(natural.compare).map((value) => [value, value || "none"]);
  const ranks = new Map(rows.map((row) => [row.verdict, data.verdicts[row.verdict][2]]));
  const verdicts = [...ranks.keys()].sort((one, other) => ranks.get(one) - ranks.get(other));
  const options = {
    verdict: [["failing", "failing, all"], ["new", "failing, new"], ["known", "failing, known"],
      ...verdicts.map((verdict) => [verdict, verdict]), ["unconventional", "pass, unconventional"]],
    op: distinct(rows.map((row) => row.op)), type: distinct(rows.map((row) => row.type)),
    group: distinct(rows.flatMap((row) => row.groups)),
    target: data.targets.map((label, place) => [String(place), label]),
    finding: data.findings.map(([place, title]) => [String(place), `${place}  ${title}`]),
  };
  for (const [name, pairs] of Object.entries(options)) {
    const select = form.elements[name];
    select.append(...[["", "all"], ...pairs].map(([value, label]) => new Option(label, value)));
    select.closest("label").hidden = pairs.length < 2;
  }

  const VERDICTS = {
    "": () => true,
    failing: (row) => row.failing,
    new: (row) => row.failing && !row.known,
    known: (row) => row.known,
    unconventional: (row) => row.verdict === "pass" && row.remarks.includes("unconventional"),
  };
  function searchable(row) {
    row.text ??= [row.case, row.message, ...row.remarks, ...row.clauses].join("\n").toLowerCase();
    return row.text;
  }
  function fits(row, { q = "", verdict = "", op, type, group, target, finding }) {
    return (VERDICTS[verdict] ?? ((each) => each.verdict === verdict))(row)
      && (!op || row.op === op) && (!type || row.type === type) && (!target || row.target === Number(target))
      && (!group || row.groups.includes(group)) && (!finding || row.findings.includes(Number(finding)))
      && q.toLowerCase().split(/\s+/).every((word) => searchable(row).includes(word));
  }

  /* ---- The table ---- */
  let sort = "verdict", shown = rows;
  const KEYS = { verdict: (row) => row.rank, message: said, worst: (row) => row.worst ?? -1 };
  function apply() {
    const wanted = Object.fromEntries(new FormData(form));
    shown = rows.filter((row) => fits(row, wanted));
    const name = sort.replace("-", ""), key = KEYS[name] ?? ((row) => row[name]);
    const compare = typeof key(rows[0]) === "number" ? (a, b) => a - b : natural.compare;
    const direction = sort.startsWith("-") ? -1 : 1;
    const keyed = shown.map((row) => [key(row), row]);
    shown = keyed.sort(([a], [b]) => direction * compare(a, b)).map(([, row]) => row);
    for (const heading of table.tHead.querySelectorAll("th")) {
      if (heading.firstElementChild.dataset.sort === name) heading.ariaSort = direction < 0 ? "descending" : "ascending";
      else heading.ariaSort = null;
    }
    const count = shown.length === rows.length ? "" : `${number.format(shown.length)} of `;
    const counts = new Map();
    for (const row of shown) counts.set(verdictText(row), (counts.get(verdictText(row)) ?? 0) + 1);
    const verdictCounts = [...counts].map(([verdict, many]) => `${number.format(many)} ${verdict}`).join("; ");
    byId("shown").textContent = `${count}${number.format(rows.length)} result${rows.length === 1 ? "" : "s"}`
      + (verdictCounts && `: ${verdictCounts}`);
    body.replaceChildren();
    draw();
  }
  function draw() {
    const start = body.rows.length;
    body.append(...shown.slice(start, start + AT_ONCE).map(line));
    const left = shown.length - body.rows.length;
    more.hidden = left === 0;
    more.textContent = `Show ${number.format(Math.min(left, AT_ONCE))} more of ${number.format(left)}`;
    return body.rows[start];
  }
  function shortId(row) { // without operator and type, which are columns, and without its digest
    const head = `${row.op.split("::").at(-1).toLowerCase()}.${row.type}.`;
    return row.case.startsWith(head) ? row.case.slice(head.length).replace(/\.[0-9a-f]{6}$/, "") : row.case;
  }
  function line(row) {
    const cut = said(row).length > 300 ? `${said(row).slice(0, 300)} …` : said(row);
    const title = link(address(row), shortId(row) || "unnamed case");
    title.title = row.case;
    const worst = row.worst === null ? "" : row.worst >= 1e6 ? "> 1e6" : String(row.worst);
    const cells = { verdict: chip(row), case: title, op: row.op, type: row.type, target: data.targets[row.target],
      worst, message: cut, ms: String(Number(row.ms.toPrecision(2))) };
    const element = make("tr");
    for (const heading of table.tHead.querySelectorAll("button")) {
      const name = heading.dataset.sort, cell = make(name === "case" ? "th" : "td", `c-${name}`, cells[name]);
      cell.dataset.label = heading.textContent;
      element.append(cell);
    }
    return element;
  }
  more.addEventListener("click", () => draw()?.querySelector("a").focus());
  table.tHead.addEventListener("click", (event) => {
    const name = event.target.closest("button")?.dataset.sort;
    if (!name) return;
    const first = name === "worst" || name === "ms" ? `-${name}` : name; // of numbers the largest first
    sort = sort === first ? (first === name ? `-${name}` : name) : first;
    apply();
    keep();
  });

  /* ---- One result ---- */
  const detail = byId("detail");
  const address = (row) => `#case?${new URLSearchParams({ id: row.case, target: String(row.target) })}`;
  function open(row) {
    byId("detail-title").textContent = row.case || "unnamed case";
    const facts = make("dl", "facts");
    const fact = (name, ...value) => {
      if (value.some(Boolean)) facts.append(make("div", "", make("dt", "", name), make("dd", "", ...value)));
    };
    fact("First at", row.where);
    fact("Error/bound", row.worst === null ? "" : String(row.worst));
    for (const place of row.findings) {
      const [, title] = data.findings.find(([one]) => one === place);
      const finding = link(`#finding-${place}`, `${place}  ${title}`);
      finding.addEventListener("click", () => detail.close());
      fact("Finding", finding);
    }
    fact("Remarks", row.remarks.join(", "));
    fact("Operator", `${row.op}, ${row.type}`);
    fact("Target", data.targets[row.target]);
    fact("Features", row.groups.join(", "));
    fact("Took", `${row.ms} ms`);
    const clauses = make("details", "", make("summary", "", `Clauses that it tests: ${row.clauses.length}`));
    for (const id of row.clauses) {
      const [status, text] = data.clauses[id] ?? ["", ""];
      const foot = make("footer", "", make("code", "", id), make("span", "status", status));
      clauses.append(make("div", "clause", ...(text ? [make("p", "", text)] : []), foot));
    }
    const message = row.message ? [make("pre", "message", row.message)] : [];
    byId("detail-body").replaceChildren(chip(row), ...message, facts, make("pre", "command", row.command), ...(row.clauses.length ? [clauses] : []));
    if (!detail.open) detail.showModal();
    detail.scrollTop = 0;
  }
  byId("close").addEventListener("click", () => detail.close());
  detail.addEventListener("click", (event) => { if (event.target === detail) detail.close(); });
  detail.addEventListener("close", () => { if (location.hash.startsWith("#case?")) keep(); });

  /* ---- The address ---- */
  function keep() {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    if (sort !== "verdict") query.set("sort", sort);
    history.replaceState(null, "", `#results${query.size ? `?${query}` : ""}`);
  }
  function follow() {
    const [name, text = ""] = location.hash.split("?"), query = new URLSearchParams(text);
    if (name === "#case") {
      const row = rows.find((each) => each.case === query.get("id") && String(each.target) === (query.get("target") ?? "0"));
      if (row) open(row);
    } else if (name === "#results") {
      for (const field of form.elements) if (field.name) field.value = query.get(field.name) ?? "";
      for (const select of form.querySelectorAll("select")) if (select.selectedIndex < 0) select.value = "";
      sort = table.tHead.querySelector(`[data-sort="${CSS.escape((query.get("sort") ?? "").replace("-", ""))}"]`) ? query.get("sort") : "verdict";
      apply();
      byId("results").scrollIntoView();
    }
  }
  let typing = 0;
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { apply(); keep(); }, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { sort = "verdict"; apply(); keep(); }));
  addEventListener("hashchange", follow);

  form.hidden = table.hidden = false;
  apply();
  follow();
})();
