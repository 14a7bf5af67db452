// Objects of a kind: search, namespaces, live; one of them opens beside the list.

import { ask, getJson, may, warnings } from "./api.js";
import { age, everyFrame, fill, h, toast } from "./dom.js";
import { Detail } from "./detail.js";
import { Grid } from "./grid.js";
import { pathOf } from "./kinds.js";
import { LiveList, wordsOf } from "./live-list.js";
import { refusal } from "./refusal.js";
import { identity } from "./yaml-text.js";

const GOOD = new Set(["Running", "Active", "Bound", "Ready", "True", "Succeeded", "Completed", "Complete", "Available", "Established"]);
const BAD = new Set(["Failed", "Error", "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "Evicted", "Unknown", "NotReady", "Lost", "False", "OOMKilled"]);
const WAITING = new Set(["Pending", "Terminating", "ContainerCreating", "Init", "Released", "Suspended"]);
const FLASH = 1500;
const LETTER = 8.4;
const PADDING = 24;
const NARROW = matchMedia("(max-width: 640px)");

export class ObjectsView {
  constructor(main, kind, route, navigate) {
    this._kind = kind;
    this._route = route;
    this._navigate = navigate;
    this._query = route.query;
    this._state = "loading";
    this._shown = [];
    this._grid = new Grid({
      label: kind.resource, open: (row) => {
        if (!this._detail || this._detail.mayLeave()) navigate({ ...this._route, name: row.name, namespace: row.namespace, tab: "yaml" });
      },
      cellsOf: (row) => this._cells(row), classOf: (row) => this._classOf(row),
    });
    this._count = h("span", { class: "count", role: "status", "aria-live": "polite" });
    this._live = h("span", { class: "live" });
    this._problem = h("div", { class: "problem", role: "alert" });
    this._empty = h("p", { class: "empty", hidden: true });
    this._search = h("input", {
      type: "search", id: "search", placeholder: "Search…", value: this._query, "aria-label": `Search ${kind.resource}`,
      oninput: () => { this._query = this._search.value; this._grid.toTop(); this._changed(); navigate({ ...this._route, query: this._query }, true); },
    });
    this._namespaces = h("select", {
      "aria-label": "Namespace", onchange: () => navigate({ ...this._route, scope: this._namespaces.value, name: "", namespace: "" }),
    });
    this._create = h("button", { class: "button", type: "button", hidden: true, onclick: () => this._openCreate() }, "Create…");
    this._aside = h("div", { class: "detail-place" });
    fill(main, h("section", { class: "objects", "aria-labelledby": "view-title" },
      h("div", { class: "toolbar" },
        h("h1", { id: "view-title" }, kind.kind), this._count, this._live, h("span", { class: "grow" }),
        kind.namespaced ? this._namespaces : null, this._search, this._create),
      this._problem,
      h("div", { class: "split" }, h("div", { class: "grid-place" }, this._grid.element, this._empty), this._aside)));
    this._changed = everyFrame(() => this._show());
    this._list = null;
    this._ages = setInterval(() => this._grid.refresh(), 5000);
    this._turned = () => { if (this._columns) this._setColumns(); };
    NARROW.addEventListener("change", this._turned);
    this._begin();
    this._openDetail();
    if (kind.namespaced) this._fillNamespaces();
    if (kind.verbs.includes("create")) may("create", kind, route.scope).then((allowed) => { this._create.hidden = !allowed; });
  }

  close() {
    clearInterval(this._ages);
    NARROW.removeEventListener("change", this._turned);
    this._list.stop();
    this._grid.close();
    if (this._detail) this._detail.close();
  }

  /** Go somewhere else within the same kind; false where that needs another view. */
  moveTo(kind, route) {
    if (kind.id !== this._kind.id || route.scope !== this._route.scope) return false;
    const changed = route.name !== this._route.name || route.namespace !== this._route.namespace;
    this._route = route;
    if (route.query !== this._query) {
      this._query = this._search.value = route.query;
      this._changed();
    }
    if (changed) this._openDetail();
    else if (this._detail) this._detail.show(route.tab);
    return true;
  }

  _begin() {
    this._list = new LiveList(this._kind, this._route.scope, {
      changed: (row, type) => {
        if (!this._columns && this._list.columns.length) this._setColumns();
        if (row && this._detail) this._detail.objectChanged(row, type);
        this._changed();
      },
      failed: (error) => { fill(this._problem, refusal(error)); this._setState("stopped"); },
      state: (state) => { if (state !== "waiting") fill(this._problem); this._setState(state); },
    });
  }

  _setState(state) {
    this._state = state;
    this._live.className = `live ${state}`;
    this._live.textContent = { loading: "loading", live: "live", waiting: "reconnecting", polled: "every ten seconds", stopped: "" }[state];
    this._changed();
  }

  _setColumns() {
    const definitions = this._list.columns.map((column, at) => ({ ...column, at })).filter((column) => column.priority === 0);
    const longest = (at) => this._list.rows.slice(0, 200).reduce((most, row) => Math.max(most, String(row.cells[at] ?? "").length), 0);
    this._columns = definitions.filter((column) => column.name !== "Age");
    const shown = this._columns.map((column) => {
      const isName = column.name === "Name";
      const letters = Math.max(column.name.length, longest(column.at));
      return {
        name: column.name, help: column.description, share: isName ? 3 : 1,
        width: Math.min(isName ? (NARROW.matches ? 176 : 250) : 200, letters * LETTER + PADDING),
      };
    });
    this._spread = this._kind.namespaced && !this._route.scope;
    if (this._spread) shown.splice(NARROW.matches ? shown.length : 0, 0, { name: "Namespace", width: 110, share: 1 });
    shown.splice(this._spread && NARROW.matches ? -1 : shown.length, 0, { name: "Age", width: 60, share: 0.5 });
    this._grid.setColumns(shown);
  }

  _show() {
    const words = this._query.toLowerCase().split(/\s+/).filter(Boolean);
    const { rows } = this._list;
    this._shown = words.length ? rows.filter((row) => words.every((word) => wordsOf(row).includes(word))) : rows;
    this._grid.setRows(this._shown);
    const total = rows.length.toLocaleString();
    this._count.textContent = words.length ? `${this._shown.length.toLocaleString()} of ${total}` : total;
    this._empty.hidden = this._shown.length > 0 || this._state === "loading" || this._state === "stopped";
    this._empty.textContent = words.length ? "Nothing matches the search." : `There are no ${this._kind.resource} here.`;
  }

  _cells(row) {
    const cells = this._columns.map((column) => cell(column.name, row.cells[column.at]));
    if (this._spread) cells.splice(NARROW.matches ? cells.length : 0, 0, row.namespace);
    cells.splice(this._spread && NARROW.matches ? -1 : cells.length, 0, age(row.created));
    return cells;
  }

  _classOf(row) {
    const flash = row.touched && performance.now() - row.touched < FLASH ? "touched" : "";
    if (flash) setTimeout(() => this._grid.refresh(), FLASH);
    return `${flash} ${row.deleting ? "deleting" : ""}`;
  }

  _openDetail() {
    if (this._detail) this._detail.close();
    this._detail = null;
    const { name, namespace, tab } = this._route;
    this._aside.classList.toggle("open", Boolean(name));
    this._grid.select(name ? `${namespace}/${name}` : "");
    if (!name) { fill(this._aside); return; }
    this._detail = new Detail(this._aside, this._kind, namespace, name, tab, {
      show: (chosen) => this._navigate({ ...this._route, tab: chosen }, true),
      close: () => { this._navigate({ ...this._route, name: "", namespace: "", tab: "" }); this._grid.element.focus(); },
    });
  }

  async _fillNamespaces() {
    let names = [];
    try {
      const list = await getJson("/api/v1/namespaces", { accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json" });
      names = list.items.map((item) => item.metadata.name);
    } catch { /* who may not list namespaces still has the one in the address */ }
    if (this._route.scope && !names.includes(this._route.scope)) names.push(this._route.scope);
    fill(this._namespaces, h("option", { value: "" }, "All namespaces"),
      names.sort().map((name) => h("option", { value: name, selected: name === this._route.scope }, name)));
  }

  _openCreate() {
    const { group, version, kind, namespaced, resource } = this._kind;
    const namespace = namespaced ? `\n  namespace: ${this._route.scope || "default"}` : "";
    const text = h("textarea", {
      id: "create-text", rows: "16", spellcheck: "false", class: "yaml-editor",
      value: `apiVersion: ${group ? `${group}/` : ""}${version}\nkind: ${kind}\nmetadata:\n  name: ${resource.replace(/s$/, "")}-1${namespace}\n`,
    });
    const problem = h("div", { class: "problem", role: "alert" });
    const send = async (dry) => {
      fill(problem);
      const asked = identity(text.value);
      try {
        const path = pathOf(this._kind, asked.namespace || this._route.scope || "default");
        const answer = await ask(`${path}?fieldValidation=Strict&fieldManager=pilothouse-console${dry ? "&dryRun=All" : ""}`,
          { method: "POST", body: text.value, type: "application/yaml" });
        warnings(answer).forEach((warning) => toast(warning, "warn"));
        toast(dry ? "The server would accept this." : `${kind} ${asked.name} was created.`);
        if (!dry) dialog.close();
      } catch (error) {
        fill(problem, refusal(error));
      }
    };
    const dialog = h("dialog", { class: "card dialog", "aria-labelledby": "create-title", onclose: () => dialog.remove() },
      h("h2", { id: "create-title" }, `Create ${kind}`),
      h("label", { for: "create-text" }, "YAML"), text, problem,
      h("div", { class: "buttons" },
        h("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Cancel"),
        h("span", { class: "grow" }),
        h("button", { class: "button", type: "button", onclick: () => send(true) }, "Check"),
        h("button", { class: "button primary", type: "button", onclick: () => send(false) }, "Create")));
    document.body.append(dialog);
    dialog.showModal();
  }
}

/** A cell, with a colour for states that everybody knows. */
function cell(column, value) {
  const text = value === null || value === undefined ? "" : String(value);
  const first = text.split(/[,:]/)[0];
  const kind = GOOD.has(first) ? "good" : BAD.has(first) ? "bad" : WAITING.has(first) ? "waits" : "";
  if (kind && column !== "Name") return h("span", { class: `state ${kind}` }, text);
  const parts = column === "Ready" && /^(\d+)\/(\d+)$/.exec(text);
  if (parts) return h("span", { class: `state ${parts[1] === parts[2] ? "good" : "waits"}` }, text);
  return h("span", { title: text.length > 24 ? text : null, class: column === "Name" ? "name" : null }, text);
}
