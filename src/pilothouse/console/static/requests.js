// Requests as they happen: who asks for what, which server answers, and where the time goes; beside it, how the server
// is: watches and what waits for them, queues, the store, the loop.

import { ask, jsonLines } from "./api.js";
import { bytes, duration, everyFrame, fill, h, svg, tabBar } from "./dom.js";
import { refusal } from "./refusal.js";

const KEPT = 1000;
const SHOWN = 200;
const SECONDS = 60;
const SERVERS = { "kube-aggregator": "aggregator", "kube-apiserver": "control plane", apiextensions: "custom resources" };
const HEADS = [["Time", "w-time"], ["Code", "w-code"], ["Verb", "w-verb"], ["What", "w-what"], ["Who", "w-who"], ["Server", "w-server"], ["Took", "w-took"], ["Spent on", "w-bar"]];
const READS = new Set(["get", "list", "watch"]);

export class RequestsView {
  constructor(main) {
    this._records = [];
    this._second = { count: 0, errors: 0, times: [] };
    this._seconds = [];
    this._paused = false;
    this._waiting = [];
    this._missed = 0;
    this._filter = { text: "", writes: false, errors: false, own: false };
    this._abort = new AbortController();
    this._chosen = null;
    this._tab = "queues";
    this._problem = h("div", { class: "problem", role: "alert" });
    this._tiles = h("div", { class: "tiles" });
    this._rows = h("tbody", {});
    this._status = h("span", { class: "hint", role: "status" });
    this._side = h("div", { class: "state-panel" });
    this._detail = h("div", {});
    this._later = everyFrame(() => this._render());
    const pause = h("button", { class: "button", type: "button", "aria-pressed": "false", onclick: () => this._pause(pause) }, "Pause");
    fill(main, h("section", { class: "requests", "aria-labelledby": "view-title" },
      h("div", { class: "toolbar" },
        h("h1", { id: "view-title" }, "Requests"), this._status, h("span", { class: "legends" }, legend()), h("span", { class: "grow" }),
        this._check("writes", "Writes only"), this._check("errors", "Failures only"), this._check("own", "Without the server's own"),
        h("input", { type: "search", id: "search", placeholder: "Path, user, agent…", "aria-label": "Filter requests",
          oninput: (event) => { this._filter.text = event.target.value.toLowerCase(); this._later(); } }),
        pause),
      this._problem, this._tiles,
      h("div", { class: "request-split" },
        h("div", { class: "table-place", tabindex: "0", role: "region", "aria-label": "Requests as they happen" }, h("table", { class: "table requests-table" },
          h("thead", {}, h("tr", {}, HEADS.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
          this._rows)),
        h("div", { class: "request-side" }, this._detail, this._side))));
    this._ticking = setInterval(() => this._tick(), 1000);
    this._run();
  }

  close() {
    clearInterval(this._ticking);
    this._abort.abort();
  }

  _check(name, title) {
    return h("label", { class: "check" }, h("input", { type: "checkbox", onchange: (event) => { this._filter[name] = event.target.checked; this._later(); } }), title);
  }

  _pause(button) {
    this._paused = !this._paused;
    button.setAttribute("aria-pressed", String(this._paused));
    button.textContent = this._paused ? "Go on" : "Pause";
    if (!this._paused) { this._keep(this._waiting); this._waiting = []; }
    this._later();
  }

  async _run() {
    const { signal } = this._abort;
    while (!signal.aborted) {
      try {
        const answer = await ask("requests", { signal });
        fill(this._problem);
        for await (const line of jsonLines(answer)) {
          if (line.vitals) this._vitals = line.vitals;
          if (line.requests) this._take(line.requests, line.missed);
          this._later();
        }
      } catch (error) {
        if (signal.aborted) return;
        fill(this._problem, error.code === 403
          ? h("p", {}, "You may not look at requests: that needs the right to get the path ", h("code", {}, "/console/requests"), ".")
          : refusal(error));
        if (error.code === 403 || error.code === 401) return;
      }
      await new Promise((resume) => setTimeout(resume, 1000));
    }
  }

  _take(records, missed) {
    this._missed += missed;
    this._second.count += records.length + missed;
    for (const record of records) {
      if (record.code >= 500 || record.code === 429) this._second.errors += 1;
      if (record.verb !== "watch") this._second.times.push(record.seconds);
    }
    if (this._paused) this._waiting = [...this._waiting, ...records].slice(-KEPT);
    else this._keep(records);
  }

  _keep(records) {
    this._records = [...records.reverse(), ...this._records].slice(0, KEPT);
  }

  _tick() {
    this._seconds = [...this._seconds, this._second].slice(-SECONDS);
    this._second = { count: 0, errors: 0, times: [] };
    this._later();
  }

  _fits(record) {
    const { text, writes, errors, own } = this._filter;
    if (writes && READS.has(record.verb)) return false;
    if (errors && record.code < 400) return false;
    if (own && record.from === "::1") return false;
    return !text || `${record.path}?${record.query} ${record.user} ${record.agent} ${record.verb} ${record.code}`.toLowerCase().includes(text);
  }

  _render() {
    this._renderTiles();
    const shown = this._records.filter((record) => this._fits(record)).slice(0, SHOWN);
    fill(this._rows, shown.map((record) => this._row(record)));
    this._status.textContent = this._paused ? `paused, ${this._waiting.length} more since` : this._missed ? `${this._missed} too fast to show` : "live";
    this._renderDetail();
    this._renderState();
  }

  _row(record) {
    const name = SERVERS[record.server] || record.server || "refused";
    const open = () => { this._chosen = this._chosen === record ? null : record; this._later(); };
    return h("tr", {
      class: record === this._chosen ? "selected" : "", tabindex: "0", onclick: open,
      onkeydown: (event) => { if (event.key === "Enter") open(); },
    },
    h("td", { class: "num" }, clock(record.time)),
    h("td", {}, h("span", { class: `state ${codeKind(record.code)}` }, record.code || "gone")),
    h("td", {}, record.verb),
    h("td", { class: "what", title: `${record.path}${record.query ? `?${record.query}` : ""}` }, ...what(record)),
    h("td", { class: "who-cell", title: record.user }, shortUser(record.user)),
    h("td", {}, name),
    h("td", { class: "num" }, duration(record.seconds)),
    h("td", {}, bar(shares(record))));
  }

  _renderTiles() {
    const { _seconds: seconds } = this;
    const times = seconds.flatMap((second) => second.times).sort((a, b) => a - b);
    const at = (part) => (times.length ? duration(times[Math.min(times.length - 1, Math.floor(times.length * part))]) : "–");
    const last = seconds[seconds.length - 1] || { count: 0, errors: 0 };
    const failures = seconds.reduce((sum, second) => sum + second.errors, 0);
    const vitals = this._vitals;
    fill(this._tiles,
      tile("Requests a second", String(last.count), spark(seconds.map((second) => second.count))),
      tile("Half are answered within", at(0.5), h("span", { class: "hint" }, `99 of 100 within ${at(0.99)}`)),
      tile("Failures, last minute", String(failures), spark(seconds.map((second) => second.errors))),
      vitals ? tile("Loop lag", duration(vitals.loopLag), h("span", { class: "hint" }, vitals.processes > 1 ? `worst of ${vitals.processes} processes` : "just now")) : null,
      vitals ? tile("Store", bytes(vitals.store.bytes), h("span", { class: "hint" }, `revision ${vitals.store.revision.toLocaleString()}, history since ${vitals.store.compacted.toLocaleString()}`)) : null,
      vitals ? tile("Watches", String(vitals.watchCount), h("span", { class: "hint" }, `${vitals.watches.reduce((sum, watch) => sum + watch.waiting, 0)} events wait`)) : null);
  }

  _renderDetail() {
    const record = this._chosen;
    if (!record) { fill(this._detail); return; }
    const most = Math.max(record.seconds, 1e-6);
    const step = (name, seconds, kind, note) => h("li", {},
      h("span", { class: "step-name" }, name), note ? h("span", { class: "badge" }, note) : null,
      meter(seconds / most, kind), h("span", { class: "num" }, duration(seconds)));
    fill(this._detail, h("section", { class: "card journey", "aria-label": "The way of the request" },
      h("div", { class: "timeline-head" }, h("h2", {}, "The way of the request"), h("span", { class: "grow" }),
        h("button", { class: "icon-button", type: "button", "aria-label": "Close", onclick: () => { this._chosen = null; this._later(); } }, "✕")),
      h("p", { class: "what" }, `${record.method} ${record.path}${record.query ? `?${record.query}` : ""}`),
      h("dl", { class: "facts" },
        fact("Who", record.user || "nobody"), fact("From", record.from), fact("Agent", record.agent),
        fact("Answer", `${record.code || "none"}, ${bytes(record.bytes)}`),
        fact("Server", SERVERS[record.server] || record.server || "refused before any server"),
        fact("Priority level", record.level), fact("Queued", record.queued ? duration(record.queued) : ""),
        fact("Audit ID", record.id)),
      h("h3", {}, "Filters"),
      h("ol", { class: "steps" }, record.filters.map(([name, seconds]) =>
        step(name, Math.max(0, seconds), name === "handler" ? "k-handler" : "k-filters", lastFilter(record, name)))),
      record.steps.length ? h("h3", {}, "In the handler") : null,
      record.steps.length ? h("ol", { class: "steps" }, record.steps.map((each) => this._step(record, each))) : null));
  }

  _step(record, [depth, kind, name, detail, offset, seconds, failed]) {
    const note = failed ? "refused" : { admit: "mutating", validate: "validating" }[detail] || detail;
    return h("li", {},
      h("span", { class: `step-name depth-${Math.min(depth, 4)}` }, name), note ? h("span", { class: `badge ${failed ? "minus" : ""}` }, note) : null,
      meter(seconds / record.seconds, `k-${kind || "handler"}`, offset / record.seconds), h("span", { class: "num" }, duration(seconds)));
  }

  _renderState() {
    const vitals = this._vitals;
    if (!vitals) { fill(this._side); return; }
    const focused = this._side.contains(document.activeElement);
    const tabs = tabBar("State of the server", [["queues", "Queues"], ["watches", "Watches"], ["objects", "Stored"]], this._tab, (name) => { this._tab = name; this._render(); });
    fill(this._side, h("section", { class: "card" }, tabs, h("div", { role: "tabpanel", "aria-labelledby": `tab-${this._tab}`, class: "scroll" }, {
      queues: () => table(["Priority level", "Seats", "Running", "Waiting", "Served", "Refused"],
        vitals.levels.map((level) => [level.name, level.seats || "–", level.executing, level.waiting, level.dispatched.toLocaleString(), level.rejected])),
      watches: () => table(["What", "Who", "Waiting", ""],
        vitals.watches.map((watch) => [watch.what, shortUser(watch.client), watch.waiting, watch.live ? "" : "catching up"])),
      objects: () => table(["Resource", "Objects"],
        Object.entries(vitals.store.objects).sort((a, b) => b[1] - a[1]).map(([name, count]) => [name, count.toLocaleString()])),
    }[this._tab]())));
    if (focused) document.getElementById(`tab-${this._tab}`).focus();
  }
}

/** What a request is about, in few words: the object rather than its path. */
function what(record) {
  if (!record.resource) return [record.path, record.query ? h("span", { class: "hint" }, `?${record.query}`) : ""];
  const object = [record.namespace, record.name].filter(Boolean).join("/");
  return [
    h("span", {}, record.subresource ? `${record.resource}/${record.subresource}` : record.resource), " ",
    h("strong", {}, object), record.query ? h("span", { class: "hint" }, ` ?${record.query}`) : "",
  ];
}

function legend() {
  return ["filters", "handler", "admission", "storage"].map((name) => h("span", { class: "legend" },
    svg("svg", { viewBox: "0 0 8 8", width: "8", height: "8", "aria-hidden": "true" }, svg("rect", { class: `k-${name}`, width: "8", height: "8", rx: "2" })), name));
}

function table(names, rows) {
  return h("table", { class: "table small" },
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: at ? "num" : "what" }, String(cell)))))));
}

function tile(title, value, below) {
  return h("div", { class: "card tile" }, h("span", { class: "overline" }, title), h("strong", {}, value), below);
}

function fact(name, value) {
  return value ? h("div", {}, h("dt", {}, name), h("dd", {}, value)) : null;
}

function spark(values) {
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${((at + SECONDS - values.length) * 100) / (SECONDS - 1)},${24 - (value / most) * 22}`);
  return svg("svg", { class: "spark", viewBox: "0 0 100 25", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("polyline", { points: points.join(" ") }));
}

/** The parts of a request's time: filters, admission, storage, and the rest, which its handler took. */
function shares(record) {
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const of = (wanted) => sum(record.steps.filter(([, kind]) => kind === wanted).map(([, , , , , seconds]) => seconds));
  const handler = sum(record.filters.filter(([name]) => name === "handler").map(([, seconds]) => seconds));
  const admission = of("admission"), storage = of("storage");
  const rest = Math.max(0, handler - admission - storage);
  const filters = Math.max(0, record.seconds - handler);
  const total = Math.max(filters + admission + storage + rest, 1e-9);
  return [["filters", filters / total], ["handler", rest / total], ["admission", admission / total], ["storage", storage / total]];
}

function bar(parts) {
  const title = parts.filter(([, part]) => part > 0.005).map(([name, part]) => `${name} ${Math.round(part * 100)} %`).join(", ");
  let x = 0;
  const pieces = parts.map(([name, part]) => {
    const piece = svg("rect", { class: `k-${name}`, x: String(x * 100), width: String(part * 100), height: "8" });
    x += part;
    return piece;
  });
  return svg("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": title }, svg("title", {}, title), ...pieces);
}

/** A part of the whole, from where it began. */
function meter(part, kind, from = 0) {
  const width = Math.max(1, Math.min(1, part) * 100);
  return svg("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "k-none", width: "100", height: "8" }),
    svg("rect", { class: kind, x: String(Math.min(from * 100, 100 - width)), width: String(width), height: "8" }));
}

function lastFilter(record, name) {
  const last = record.filters[record.filters.length - 1];
  return last && last[0] === name && name !== "handler" ? "answered" : "";
}

function codeKind(code) {
  if (code >= 500 || code === 0) return "bad";
  if (code >= 400) return "waits";
  return "good";
}

function shortUser(name) {
  return name.replace(/^system:serviceaccount:/, "");
}

function clock(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
