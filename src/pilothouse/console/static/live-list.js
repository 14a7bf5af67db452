// All objects of a kind, kept up to date: listed page by page as a table, then watched from the list's version.
//
// Rows stay in the order of the server (namespace, name), also when watch events come, so that tens of thousands of
// objects need no sorting.

import { ask, getJson, jsonLines } from "./api.js";
import { pathOf } from "./kinds.js";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PAGE = 1000;
const POLL_MILLISECONDS = 10000;

export class LiveList {
  constructor(kind, namespace, { changed, failed, state }) {
    this.kind = kind;
    this.namespace = namespace;
    this.columns = [];
    this.rows = [];
    this._byKey = new Map();
    this._changed = changed;
    this._failed = failed;
    this._state = state;
    this._abort = new AbortController();
    this._run();
  }

  stop() {
    this._abort.abort();
  }

  get(namespace, name) {
    return this._byKey.get(`${namespace}/${name}`);
  }

  async _run() {
    const { signal } = this._abort;
    while (!signal.aborted) {
      try {
        this._state("loading");
        let version = await this._list();
        if (!this.kind.verbs.includes("watch")) await this._pause();
        else while (version) version = await this._watch(version);
      } catch (error) {
        if (signal.aborted) return;
        this._failed(error);
        if (error.code === 403 || error.code === 401 || error.code === 404 || error.code === 405) return;
        await new Promise((resume) => setTimeout(resume, 2000));
      }
    }
  }

  async _list() {
    const found = new Map();
    const rows = [];
    let token = "", version = "";
    do {
      const query = `?limit=${PAGE}${token ? `&continue=${encodeURIComponent(token)}` : ""}`;
      const table = await getJson(pathOf(this.kind, this.namespace) + query, { accept: TABLE, signal: this._abort.signal });
      if (table.columnDefinitions && table.columnDefinitions.length) this.columns = table.columnDefinitions;
      for (const each of table.rows || []) {
        const row = read(each);
        found.set(row.key, row);
        rows.push(row);
      }
      version = table.metadata.resourceVersion;
      token = table.metadata.continue || "";
      if (rows.length > this.rows.length || !token) {
        this.rows = rows;
        this._byKey = found;
        this._changed(null);
      }
    } while (token);
    return version;
  }

  /** What cannot be watched is listed again and again. */
  async _pause() {
    this._state("polled");
    await new Promise((resume) => setTimeout(resume, POLL_MILLISECONDS));
  }

  /** Follow the changes after a version; the version to go on from, or nothing where a new list is needed. */
  async _watch(version) {
    const query = `?watch=true&allowWatchBookmarks=true&resourceVersion=${version}`;
    const path = pathOf(this.kind, this.namespace) + query;
    this._state("live");
    const answer = await ask(path, { accept: TABLE, signal: this._abort.signal });
    try {
      for await (const event of jsonLines(answer)) {
        if (event.type === "ERROR") return "";
        const metadata = event.object.metadata || {};
        if (event.type !== "BOOKMARK") for (const each of event.object.rows || []) this._take(event.type, read(each));
        const newest = event.object.rows && event.object.rows.length
          ? event.object.rows[0].object.metadata.resourceVersion : metadata.resourceVersion;
        if (newest) version = newest;
      }
    } catch (error) {
      if (this._abort.signal.aborted) throw error;
      this._state("waiting");
      await new Promise((resume) => setTimeout(resume, 1000));
    }
    return version;
  }

  _take(type, row) {
    const known = this._byKey.get(row.key);
    if (type === "DELETED") {
      if (known) {
        this._byKey.delete(row.key);
        this.rows.splice(this._place(known), 1);
      }
    } else if (known) {
      this.rows[this._place(known)] = row;
      this._byKey.set(row.key, row);
    } else {
      this._byKey.set(row.key, row);
      this.rows.splice(this._place(row), 0, row);
    }
    row.touched = performance.now();
    this._changed(row, type);
  }

  /** Where a row is, or would be. */
  _place(row) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(this.rows[middle], row)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function before(a, b) {
  return a.namespace === b.namespace ? a.name < b.name : a.namespace < b.namespace;
}

function read(row) {
  const { name, namespace = "", uid, creationTimestamp, deletionTimestamp, labels } = row.object.metadata;
  return {
    key: `${namespace}/${name}`, name, namespace, uid, created: creationTimestamp, deleting: Boolean(deletionTimestamp),
    cells: row.cells, labels, touched: 0, words: "",
  };
}

/** What a search looks at. */
export function wordsOf(row) {
  if (!row.words) {
    const labels = Object.entries(row.labels || {}).map(([key, value]) => `${key}=${value}`);
    row.words = [row.namespace, row.name, ...row.cells, ...labels].join(" ").toLowerCase();
  }
  return row.words;
}
