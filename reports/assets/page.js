"use strict";
/* The table of all results. Only text is ever put into the page, never markup, so nothing that a runtime said can
   become an element. */
(function () {
  const byId = (id) => document.getElementById(id);
  const source = byId("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);

  /* ---- The columns, one array each over all runs (see payload.py) ---- */
  const SHARED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const sharedOf = new Map([...SHARED].map((letter, place) => [letter, place]));
  const total = data.runs.reduce((sum, run) => sum + run.kind.length, 0);
  const cases = new Array(total);
  const kindOf = new Int32Array(total), aboutOf = new Int32Array(total), repeatOf = new Int32Array(total).fill(-1);
  const worst = new Float64Array(total), ms = new Float64Array(total);
  const kinds = [], abouts = [], repeats = [];
  const notes = new Map(), findings = new Map(data.findings.map(([number]) => [number, []]));
  let at = 0;
  for (const run of data.runs) {
    const n = run.kind.length, firstKind = kinds.length, firstAbout = abouts.length, firstRepeat = repeats.length;
    let before = "";
    run.case.split("\n").forEach((line, row) => {
      if (row < n) cases[at + row] = before = before.slice(0, sharedOf.get(line[0])) + line.slice(1);
    });
    for (let row = 0; row < n; row++) {
      kindOf[at + row] = firstKind + run.kind[row];
      aboutOf[at + row] = firstAbout + run.about[row];
      worst[at + row] = run.worst[row];
      ms[at + row] = run.ms[row];
      if (run.repeat.length) repeatOf[at + row] = firstRepeat + run.repeat[row];
    }
    for (const [op, type, target, verdict, expected, said, repeat] of run.kinds)
      kinds.push({ op, type, target, verdict, expected: Boolean(expected), said, repeat });
    for (const [clauses, groups] of run.abouts)
      abouts.push({ clauses: clauses.map((c) => run.clauseNames[c]), groups: groups.map((g) => run.groupNames[g]) });
    repeats.push(...run.repeats);
    let row = at;
    run.noteRows.forEach((step, place) => {
      row += step;
      notes.set(row, { message: run.messages[place], place: run.places[place] });
    });
    for (const [number, steps] of run.found) {
      row = at;
      findings.get(number).push(...steps.map((step) => (row += step)));
    }
    at += n;
  }
  const wordOf = (verdict) => data.verdicts[verdict] || ["question", "quiet", 0, 99];
  const failing = (kind) => wordOf(kind.verdict)[2] === 1;
  const toneOf = (kind) => (failing(kind) && kind.expected ? "known" : wordOf(kind.verdict)[1]);
  const verdictText = (kind) => (kind.verdict || "no verdict") + (failing(kind) && kind.expected ? ", known" : "");

  /* ---- Filters ---- */
  const form = byId("filters"), grid = byId("grid"), shownText = byId("shown");
  const body = grid.querySelector("tbody");
  const natural = new Intl.Collator("en", { numeric: true });
  const number = new Intl.NumberFormat("en");

  function fill(name, pairs) {
    const select = form.elements[name];
    for (const [value, label] of [["", "all"], ...pairs]) {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = label;
      select.append(option);
    }
    select.closest("label").hidden = pairs.length < 2 && name !== "finding" || pairs.length === 0;
  }
  const distinct = (values) => [...new Set(values)].sort(natural.compare).map((value) => [value, value || "none"]);
  const verdictsHere = [...new Set(kinds.map((kind) => kind.verdict))].sort((a, b) => wordOf(a)[3] - wordOf(b)[3]);
  fill("verdict", [
    ["failing", "failing, all"], ["new", "failing, new"], ["known", "failing, known"],
    ...verdictsHere.map((verdict) => [verdict, verdict || "no verdict"]),
    ...(kinds.some((kind) => kind.said.includes("unconventional")) ? [["unconventional", "pass, unconventional"]] : []),
  ]);
  fill("op", distinct(kinds.map((kind) => kind.op)));
  fill("type", distinct(kinds.map((kind) => kind.type)));
  fill("group", distinct(abouts.flatMap((about) => about.groups)));
  fill("target", data.subjects.map((label, place) => [String(place), label]));
  fill("finding", data.findings.map(([place, title]) => [String(place), `${place}  ${title}`]));
  grid.classList.toggle("one-target", data.subjects.length < 2);

  function verdictFits(kind, wanted) {
    switch (wanted) {
      case "": return true;
      case "failing": return failing(kind);
      case "new": return failing(kind) && !kind.expected;
      case "known": return failing(kind) && kind.expected;
      case "unconventional": return kind.verdict === "pass" && kind.said.includes("unconventional");
      default: return kind.verdict === wanted;
    }
  }

  let haystack = null; // built at the first search: one lower-case string a row
  function searchable() {
    if (!haystack) {
      const clauseText = abouts.map((about) => `\n${about.clauses.join(" ")}`);
      const saidText = kinds.map((kind) => `\n${kind.said.join(" ")}`);
      haystack = cases.map((name, row) =>
        `${name}\n${notes.get(row)?.message ?? ""}${saidText[kindOf[row]]}${clauseText[aboutOf[row]]}`.toLowerCase());
    }
    return haystack;
  }

  const sorting = { key: "verdict", descending: false }; // failures first, those that nobody expected before the others
  const ranks = {
    verdict: () => {
      const r = kinds.map((k) => (failing(k) ? (k.expected ? 1000 : 0) : 2000) + wordOf(k.verdict)[3]);
      return (row) => r[kindOf[row]];
    },
    op: () => ranked(kinds.map((kind) => kind.op)),
    type: () => ranked(kinds.map((kind) => kind.type)),
    target: () => (row) => kinds[kindOf[row]].target,
    worst: () => (row) => worst[row],
    ms: () => (row) => ms[row],
    case: () => {
      // Sorted once by plain code order with numbers aligned, which is many times faster than a collator on each pair.
      const keys = cases.map((name) => name.replace(/\d+/g, (digits) => digits.padStart(8, "0")));
      const order = Uint32Array.from(cases.keys()).sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b));
      const place = new Uint32Array(total);
      order.forEach((row, rank) => { place[row] = rank; });
      return (row) => place[row];
    },
  };
  function ranked(values) {
    const order = new Map([...new Set(values)].sort(natural.compare).map((value, rank) => [value, rank]));
    const r = values.map((value) => order.get(value));
    return (row) => r[kindOf[row]];
  }
  const rankCache = {};

  let rows = new Uint32Array(0);
  function select() {
    const want = Object.fromEntries(new FormData(form));
    const kindFits = kinds.map((kind) =>
      verdictFits(kind, want.verdict) && (!want.op || kind.op === want.op) && (!want.type || kind.type === want.type) &&
      (!want.target || kind.target === Number(want.target)));
    const aboutFits = abouts.map((about) => !want.group || about.groups.includes(want.group));
    const words = want.q.toLowerCase().split(/\s+/).filter(Boolean);
    const text = words.length ? searchable() : null;
    const candidates = want.finding ? findings.get(Number(want.finding)) || [] : null;
    const found = new Uint32Array(candidates ? candidates.length : total);
    let count = 0;
    for (let place = 0; place < found.length; place++) {
      const row = candidates ? candidates[place] : place;
      if (!kindFits[kindOf[row]] || !aboutFits[aboutOf[row]]) continue;
      if (text && !words.every((word) => text[row].includes(word))) continue;
      found[count++] = row;
    }
    rows = found.slice(0, count);
    {
      const rank = (rankCache[sorting.key] ??= ranks[sorting.key]());
      const sign = sorting.descending ? -1 : 1;
      rows.sort((a, b) => sign * (rank(a) - rank(b)) || a - b);
    }
    shownText.textContent = count === total ? `${number.format(total)} results` :
      `${number.format(count)} of ${number.format(total)} results`;
    grid.querySelector("table").setAttribute("aria-rowcount", String(count + 1));
    for (const button of grid.querySelectorAll("thead button")) {
      const head = button.closest("th");
      if (button.dataset.sort === sorting.key) head.setAttribute("aria-sort", sorting.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  /* ---- The window of rows: only what can be seen is in the document ---- */
  const space = (height) => {
    const line = document.createElement("tr");
    line.className = "space";
    line.setAttribute("role", "presentation");
    const cell = line.insertCell();
    // No colSpan: it would make columns anew where a narrow screen hides some.
    cell.style.height = `${height}px`;
    return line;
  };
  const make = (tag, name, content) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (content !== undefined) element.append(content);
    return element;
  };
  const icon = (name) => {
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawing.setAttribute("class", "icon");
    drawing.setAttribute("aria-hidden", "true");
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    use.setAttribute("href", `#i-${name}`);
    drawing.append(use);
    return drawing;
  };
  function chip(kind) {
    const box = document.createElement("span"), label = document.createElement("span");
    box.className = `chip tone-${toneOf(kind)}`;
    label.textContent = verdictText(kind);
    box.append(icon(wordOf(kind.verdict)[0]), label);
    return box;
  }
  const ratioText = (value) => (value < 0 ? "" : value > 1e6 ? "> 1e6" : value >= 1e4 || (value > 0 && value < 1e-3) ? value.toExponential(1) : String(value));

  /* An id begins with operator and type, which have columns of their own, and ends with a digest: both are folded where
     the columns can be seen. */
  function idParts(name, kind) {
    const head = `${kind.op.split("::").at(-1).toLowerCase()}.${kind.type}.`;
    const tail = /\.[0-9a-f]{6}$/.exec(name)?.[0] ?? "";
    if (!name.startsWith(head) || name.length <= head.length + tail.length) return [name];
    return [make("span", "fold head", head), name.slice(head.length, name.length - tail.length), make("span", "fold", tail)];
  }

  function line(place) {
    const row = rows[place], kind = kinds[kindOf[row]], note = notes.get(row);
    const element = document.createElement("tr");
    element.setAttribute("aria-rowindex", String(place + 2));
    const add = (name, content, tag = "td") => {
      const cell = document.createElement(tag);
      cell.className = name;
      cell.append(content);
      element.append(cell);
      return cell;
    };
    add("c-verdict", chip(kind));
    const open = document.createElement("button");
    open.type = "button";
    open.className = "open";
    open.dataset.place = String(place);
    open.tabIndex = place === current ? 0 : -1;
    open.append(...idParts(cases[row] || "unnamed case", kind));
    open.title = cases[row];
    const message = note?.message || kind.said.join(", ");
    const under = make("span", "under", [`${kind.op} ${kind.type}`, message].filter(Boolean).join(": "));
    const name = add("c-case", open, "th");
    name.scope = "row";
    name.append(under);
    add("c-op", kind.op);
    add("c-type", kind.type);
    add("c-target", data.subjects[kind.target]);
    add("c-worst num", ratioText(worst[row]));
    add("c-message", make("span", "two-lines", message)).title = message;
    add("c-ms num", ms[row] < 0 ? "" : String(Number(ms[row].toPrecision(2))));
    return element;
  }

  /* ---- One configuration: what became of its cases, and which findings say why ---- */
  const ask = byId("ask"), askAnswer = byId("ask-answer");
  const INVALID = "forbidden models";
  const FEW = 0.1; // failures that are all known are called few up to this share, as the badge has it
  const AT_ONCE = 3; // findings of each kind; the first screen has more to say
  function offer(name, pairs, chosen) {
    for (const [value, label] of pairs) ask.elements[name].append(new Option(label, value, false, value === chosen));
  }
  // The version that most was judged of is what people mostly have.
  const judgedOf = new Map();
  for (const place of kindOf)
    if (kinds[place].verdict === "pass" || failing(kinds[place]))
      judgedOf.set(kinds[place].op, (judgedOf.get(kinds[place].op) ?? 0) + 1);
  const most = [...judgedOf].reduce((one, other) => (other[1] > one[1] ? other : one), ["", 0])[0];
  offer("op", distinct(kinds.map((kind) => kind.op)), most);
  offer("type", distinct(kinds.map((kind) => kind.type)), "float32");
  offer("group", [["", "any feature"], ...distinct(abouts.flatMap((about) => about.groups)).filter(([name]) => name !== INVALID)], "");
  offer("target", data.subjects.map((label, place) => [String(place), label]));
  function linked(found) {
    const places = data.findings.filter(([number]) => findings.get(number).some((row) => found.has(row)));
    const items = places.map(([number, title]) => {
      const link = make("a", "", title), item = make("li");
      link.href = `#finding-${number}`;
      item.append(link);
      return item;
    });
    const list = make("ul"), rest = make("ul"), more = make("details");
    const few = items.length > AT_ONCE + 1 ? AT_ONCE : items.length;
    list.append(...items.slice(0, few));
    rest.append(...items.slice(few));
    more.append(make("summary", "", `and ${items.length - few} more`), rest);
    return items.length === 0 ? [] : few < items.length ? [list, more] : [list];
  }
  function answerAsked() {
    const { op, type, group, target } = Object.fromEntries(new FormData(ask));
    const failed = new Set(), declined = new Set();
    let passed = 0, others = 0, forbidden = 0;
    for (let row = 0; row < total; row++) {
      const kind = kinds[kindOf[row]], groups = abouts[aboutOf[row]].groups;
      if (kind.op !== op || kind.type !== type || String(kind.target) !== target) continue;
      if (group && !groups.includes(group)) continue;
      if (groups.includes(INVALID)) { forbidden += 1; continue; }
      if (kind.verdict === "unsupported" || kind.verdict === "fallback") declined.add(row);
      else if (failing(kind)) failed.add(row);
      else if (kind.verdict === "pass") passed += 1;
      else others += 1;
    }
    const judged = passed + failed.size, all = judged + declined.size + others;
    const cases = (count) => `${number.format(count)} case${count === 1 ? "" : "s"}`;
    const judgedCases = (count) => `${cases(count)} that ${count === 1 ? "was" : "were"} judged`;
    const right = (count) => (count === 1 ? `the one case that was judged is right` : `all ${judgedCases(count)} are right`);
    const [tone, word, text] =
      all === 0 ? ["quiet", "Not tried", "no case has that"]
      : judged === 0 ? ["unsupported", declined.size ? "No" : "Unknown", `${all === 1 ? "the one case" : `none of ${cases(all)}`} ${declined.size ? (all === 1 ? "is not supported" : "is supported") : all === 1 ? "could not be judged" : "could be judged"}`]
      : failed.size ? [[...failed].every((row) => kinds[kindOf[row]].expected) && failed.size <= FEW * judged ? "known" : "fail", "Not everywhere", `${number.format(failed.size)} of ${judgedCases(judged)} ${failed.size === 1 ? "fails" : "fail"}${[...failed].every((row) => kinds[kindOf[row]].expected) ? ", all known" : ""}`]
      : declined.size ? ["part", "Where it is supported", `${right(judged)}, ${number.format(declined.size)} ${declined.size === 1 ? "is" : "are"} not supported`]
      : ["pass", "Yes", right(judged)];
    const query = new URLSearchParams({ target, op, type, ...(group ? { group } : {}) });
    const see = make("a", "", "see them");
    see.href = `#results?${query}`;
    askAnswer.replaceChildren(make("b", `tone-${tone}`, word), `: ${text}${forbidden && all ? `, without ${number.format(forbidden)} invalid model${forbidden === 1 ? "" : "s"}` : ""}`, ...(all ? ["; ", see, "."] : ["."]));
    for (const [rows, words] of [[failed, "Causes:"], [declined, "Not supported:"]])
      if (rows.size) {
        const lists = linked(rows);
        if (lists.length) askAnswer.append(make("p", "soft", words), ...lists);
      }
  }
  ask.addEventListener("input", answerAsked);
  ask.addEventListener("submit", (event) => event.preventDefault());

  let current = 0; // the row whose button the Tab key reaches
  let drawn = [-1, -1];
  const MARGIN = 12;
  const rowHeight = () => parseFloat(getComputedStyle(grid).getPropertyValue("--row"));
  function draw(force) {
    const height = rowHeight();
    const head = grid.querySelector("thead").offsetHeight;
    const top = Math.max(0, Math.floor(grid.scrollTop / height) - MARGIN);
    const end = Math.min(rows.length, Math.ceil((grid.scrollTop + grid.clientHeight - head) / height) + MARGIN);
    if (!force && top === drawn[0] && end === drawn[1]) return;
    const focused = document.activeElement?.classList.contains("open") ? Number(document.activeElement.dataset.place) : -1;
    if (current < top || current >= end) current = Math.min(top + MARGIN, Math.max(0, end - 1));
    drawn = [top, end];
    const fresh = document.createDocumentFragment();
    if (top > 0) fresh.append(space(top * height));
    for (let place = top; place < end; place++) fresh.append(line(place));
    if (end < rows.length) fresh.append(space((rows.length - end) * height));
    body.replaceChildren(fresh);
    if (focused >= 0) (body.querySelector(`[data-place="${focused}"]`) || grid).focus({ preventScroll: true });
  }
  let waiting = false;
  grid.addEventListener("scroll", () => {
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(false); });
    }
  }, { passive: true });
  addEventListener("resize", () => draw(true));

  function moveTo(place) {
    const height = rowHeight(), head = grid.querySelector("thead").offsetHeight;
    current = Math.max(0, Math.min(rows.length - 1, place));
    const top = current * height, room = grid.clientHeight - head;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top + height > grid.scrollTop + room) grid.scrollTop = top + height - room;
    draw(true);
    const button = body.querySelector(`[data-place="${current}"]`);
    button?.focus({ preventScroll: true });
    button?.scrollIntoView({ block: "nearest" }); // the page, too, where the table is half out of sight
  }
  body.addEventListener("keydown", (event) => {
    if (!event.target.classList.contains("open")) return;
    const place = Number(event.target.dataset.place), page = Math.max(1, Math.floor(grid.clientHeight / rowHeight()) - 2);
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + page, PageUp: place - page, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    moveTo(to);
  });

  /* ---- One result ---- */
  const detail = byId("detail"), detailBody = byId("detail-body");
  byId("close").addEventListener("click", () => detail.close());
  detail.addEventListener("click", (event) => { if (event.target === detail) detail.close(); });
  body.addEventListener("click", (event) => {
    const open = event.target.closest(".open");
    if (open) show(Number(open.dataset.place));
  });
  function show(place) {
    current = place;
    showRow(rows[place]);
  }
  function showRow(row) {
    const kind = kinds[kindOf[row]], about = abouts[aboutOf[row]], note = notes.get(row);
    byId("detail-title").textContent = cases[row] || "unnamed case";
    const happened = make("div", "happened");
    happened.append(chip(kind));
    if (note?.message) happened.append(make("pre", "message", note.message));
    const facts = make("dl", "facts");
    const fact = (name, value) => {
      if (value === "" || value === undefined) return;
      const pair = make("div");
      pair.append(make("dt", "", name), make("dd", "", value));
      facts.append(pair);
    };
    fact("First at", note?.place);
    fact("Error/bound", worst[row] < 0 ? "" : String(worst[row]));
    for (const [number, title] of data.findings) {
      if (!findings.get(number).includes(row)) continue;
      const link = make("a", "", `${number}  ${title}`);
      link.href = `#finding-${number}`;
      link.addEventListener("click", () => detail.close());
      fact("Finding", link);
    }
    fact("Remarks", kind.said.join(", "));
    fact("Operator", `${kind.op}, ${kind.type}`);
    fact("Target", data.subjects[kind.target]);
    fact("Features", about.groups.join(", "));
    fact("Took", ms[row] < 0 ? "" : `${ms[row]} ms`);
    const command = make("div", "command");
    const text = (repeatOf[row] >= 0 && repeats[repeatOf[row]]) || kind.repeat;
    const copy = make("button", "copy", "Copy");
    copy.type = "button";
    command.append(make("code", "", text.replaceAll("\0", cases[row])), copy);
    detailBody.replaceChildren(happened, facts, command);
    globalThis.onnxspecCopyable(command);
    const clauses = make("details");
    clauses.append(make("summary", "", `${about.clauses.length} clause${about.clauses.length === 1 ? "" : "s"} that it exercises, summarised`));
    if (about.clauses.length) detailBody.append(clauses);
    for (const id of about.clauses) {
      const [status, text] = data.clauses[id] || ["", ""];
      const quote = make("div", "clause"), foot = make("footer");
      if (text) quote.append(make("p", "", text));
      foot.append(make("code", "", id));
      if (status) foot.append(make("span", "status", status));
      quote.append(foot);
      clauses.append(quote);
    }
    history.replaceState(null, "", `#case?${new URLSearchParams({ id: cases[row], target: String(kind.target) })}`);
    if (!detail.open) detail.showModal();
    detail.scrollTop = 0;
  }
  detail.addEventListener("close", () => { if (location.hash.startsWith("#case?")) toAddress(); });

  /* ---- The address says what is shown, so that a view can be linked to and gone back to ---- */
  function apply() {
    select();
    current = 0;
    grid.scrollTop = 0;
    draw(true);
  }
  function toAddress() {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    if (sorting.key !== "verdict" || sorting.descending) query.set("sort", (sorting.descending ? "-" : "") + sorting.key);
    const text = query.toString();
    history.replaceState(null, "", text ? `#results?${text}` : "#results");
  }
  function fromAddress(first) {
    const [name, text = ""] = location.hash.split("?");
    if (name === "#case") {
      if (first) apply();
      const query = new URLSearchParams(text), id = query.get("id"), target = query.get("target");
      const row = cases.findIndex((each, at) => each === id && (target === null || kinds[kindOf[at]].target === Number(target)));
      if (row < 0) return;
      current = Math.max(0, rows.indexOf(row));
      showRow(row);
      return;
    }
    if (name !== "#results") { if (first) apply(); return; }
    if (!location.hash.includes("?") && !first) return;
    const query = new URLSearchParams(text);
    for (const field of form.elements) if (field.name) field.value = query.get(field.name) || "";
    for (const field of form.querySelectorAll("select")) if (field.selectedIndex < 0) field.value = "";
    const key = query.get("sort") || "";
    sorting.descending = key.startsWith("-");
    sorting.key = Object.hasOwn(ranks, key.replace("-", "")) ? key.replace("-", "") : "verdict";
    apply();
    if (text || !first) byId("results").scrollIntoView();
  }
  let typing = 0;
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { apply(); toAddress(); }, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => {
    sorting.key = "verdict";
    sorting.descending = false;
    apply();
    toAddress();
  }));
  grid.querySelector("thead").addEventListener("click", (event) => {
    const key = event.target.closest("button")?.dataset.sort;
    if (!key) return;
    const high = key === "worst" || key === "ms"; // numbers are looked at from the largest
    if (sorting.key !== key) { sorting.key = key; sorting.descending = high; }
    else if (sorting.descending === high) sorting.descending = !high;
    else { sorting.key = "verdict"; sorting.descending = false; }
    apply();
    toAddress();
  });
  addEventListener("hashchange", () => fromAddress(false));

  form.hidden = false;
  ask.hidden = "chosen" in ask.dataset; // of what nobody tried nothing can be asked
  answerAsked();
  grid.hidden = false;
  byId("hint").hidden = false;
  fromAddress(true);
})();
