// One object: its YAML, to be edited by who may; its events; its history with what changed.

import { ask, getJson, jsonLines, may, warnings } from "./api.js";
import { age, fill, h, tabBar, toast } from "./dom.js";
import { diffLines, hunks } from "./diff.js";
import { pathOf } from "./kinds.js";
import { refusal } from "./refusal.js";
import { highlighted, marked, withoutManagedFields } from "./yaml-text.js";

const TABS = [["yaml", "YAML"], ["events", "Events"], ["history", "History"]];

export class Detail {
  constructor(place, kind, namespace, name, tab, { show, close }) {
    this._kind = kind;
    this._namespace = namespace;
    this._name = name;
    this._path = pathOf(kind, namespace, name);
    this._onShow = show;
    this._abort = new AbortController();
    this._editing = null;
    this._versions = new Map();
    this._tabs = h("div", {});
    this._panel = h("div", { class: "panel", role: "tabpanel", tabindex: "0" });
    const heading = h("h2", { id: "detail-title", tabindex: "-1" }, name);
    fill(place, h("section", {
      class: "detail", "aria-labelledby": "detail-title",
      onkeydown: (event) => { if (event.key === "Escape" && !this._editing) close(); },
    },
    h("div", { class: "detail-head" },
      h("div", { class: "detail-name" }, h("span", { class: "overline" }, kind.kind, namespace ? ` in ${namespace}` : ""), heading),
      h("button", { class: "icon-button", type: "button", "aria-label": "Close", onclick: () => { if (this.mayLeave()) close(); } }, "✕")),
    this._tabs, this._panel));
    heading.focus({ preventScroll: true });
    this.show(tab);
  }

  close() {
    this._abort.abort();
  }

  /** Whether what was typed may be given up; the user is asked. */
  mayLeave() {
    return !this._editing || !this._editing.changed() || window.confirm("Leave without saving your changes?");
  }

  /** Show a tab; the first one where the address names none, or one that does not exist. */
  show(wanted, focus = false) {
    const tab = TABS.some(([id]) => id === wanted) ? wanted : TABS[0][0];
    if (tab === this._tab) return;
    this._tab = tab;
    this._editing = null;
    if (this._inner) this._inner.abort();
    this._inner = new AbortController();
    this._abort.signal.addEventListener("abort", () => this._inner.abort());
    fill(this._tabs, tabBar("Views of the object", TABS, tab, (chosen, focused) => {
      if (!this.mayLeave()) return;
      this.show(chosen, focused);
      this._onShow(chosen);
    }));
    this._panel.setAttribute("aria-labelledby", `tab-${tab}`);
    if (focus) document.getElementById(`tab-${tab}`).focus();
    fill(this._panel, h("p", { class: "hint" }, "Loading…"));
    ({ yaml: () => this._showYaml(), events: () => this._showEvents(), history: () => this._showHistory() })[tab]();
  }

  /** The list saw a change of some object. */
  objectChanged(row, type) {
    if (row.name !== this._name || row.namespace !== this._namespace) return;
    if (type === "DELETED") {
      toast(`${this._kind.kind} ${this._name} is gone.`);
      this._gone = true;
    } else this._gone = false;
    if (this._editing) this._editing.stale();
    else if (this._tab === "yaml" && !this._gone) this._showYaml();
    else if (this._tab === "history" && !this._gone) this._showHistory();
  }

  _failed(error) {
    if (error.name !== "AbortError") fill(this._panel, h("div", { class: "problem", role: "alert" }, refusal(error)));
  }

  async _showYaml() {
    try {
      const answer = await ask(this._path, { accept: "application/yaml", signal: this._inner.signal });
      const text = withoutManagedFields(await answer.text());
      const [update, remove] = await Promise.all(["update", "delete"].map((verb) =>
        this._kind.verbs.includes(verb) && may(verb, this._kind, this._namespace, this._name)));
      if (this._tab !== "yaml" || this._editing) return;
      const scrolled = this._panel.scrollTop;
      fill(this._panel,
        h("div", { class: "buttons" },
          h("button", { class: "button", type: "button", onclick: () => copy(text) }, "Copy"),
          h("span", { class: "grow" }),
          update ? null : h("span", { class: "hint" }, "You may read this, not change it."),
          remove ? h("button", { class: "button danger", type: "button", onclick: () => this._confirmDelete() }, "Delete…") : null,
          update ? h("button", { class: "button primary", type: "button", onclick: () => this._edit(text) }, "Edit") : null),
        h("pre", { class: "yaml", tabindex: "0", "aria-label": "YAML of the object" }, highlighted(text)));
      this._panel.scrollTop = scrolled;
    } catch (error) {
      this._failed(error);
    }
  }

  _edit(text) {
    const editor = h("textarea", { class: "yaml-editor", spellcheck: "false", "aria-label": "YAML of the object", value: text });
    const problem = h("div", { class: "problem", role: "alert" });
    const leave = () => { this._editing = null; this._showYaml(); };
    const send = async (dry) => {
      fill(problem);
      try {
        const query = `?fieldValidation=Strict&fieldManager=pilothouse-console${dry ? "&dryRun=All" : ""}`;
        const answer = await ask(this._path + query, { method: "PUT", body: editor.value, type: "application/yaml" });
        warnings(answer).forEach((warning) => toast(warning, "warn"));
        toast(dry ? "The server would accept this." : "Saved.");
        if (!dry) leave();
      } catch (error) {
        fill(problem, refusal(error));
      }
    };
    this._editing = {
      changed: () => editor.value !== text,
      stale: () => fill(problem, h("p", {}, "The object has changed meanwhile; saving will be refused. Copy what you need and edit again.")),
    };
    fill(this._panel,
      h("div", { class: "buttons" },
        h("button", { class: "button", type: "button", onclick: leave }, "Cancel"),
        h("span", { class: "grow" }),
        h("button", { class: "button", type: "button", onclick: () => send(true) }, "Check"),
        h("button", { class: "button primary", type: "button", onclick: () => send(false) }, "Save")),
      problem, editor);
    editor.focus();
    editor.setSelectionRange(0, 0);
  }

  _confirmDelete() {
    const dialog = h("dialog", { class: "card dialog", "aria-labelledby": "delete-title", onclose: () => dialog.remove() },
      h("h2", { id: "delete-title" }, `Delete ${this._kind.kind} ${this._name}?`),
      h("p", {}, "What it owns goes with it."),
      h("div", { class: "buttons" },
        h("button", { class: "button", type: "button", autofocus: true, onclick: () => dialog.close() }, "Keep"),
        h("span", { class: "grow" }),
        h("button", {
          class: "button danger", type: "button",
          onclick: async () => {
            dialog.close();
            try {
              await ask(this._path, { method: "DELETE" });
              toast(`${this._kind.kind} ${this._name} is being deleted.`);
            } catch (error) {
              toast(error.message, "warn");
            }
          },
        }, "Delete")));
    document.body.append(dialog);
    dialog.showModal();
  }

  async _showEvents() {
    const { signal } = this._inner;
    try {
      const { metadata } = await getJson(this._path, { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", signal });
      const inside = this._namespace ? `/namespaces/${encodeURIComponent(this._namespace)}` : "";
      const path = `/api/v1${inside}/events?fieldSelector=${encodeURIComponent(`involvedObject.uid=${metadata.uid}`)}`;
      const list = await getJson(path, { signal });
      const events = new Map(list.items.map((event) => [event.metadata.uid, event]));
      this._fillEvents(events);
      const answer = await ask(`${path}&watch=true&resourceVersion=${list.metadata.resourceVersion}`, { signal });
      for await (const { type, object } of jsonLines(answer)) {
        if (type === "DELETED") events.delete(object.metadata.uid);
        else if (type === "ADDED" || type === "MODIFIED") events.set(object.metadata.uid, object);
        this._fillEvents(events);
      }
    } catch (error) {
      if (!signal.aborted) this._failed(error);
    }
  }

  _fillEvents(events) {
    const when = (event) => event.lastTimestamp || event.eventTime || event.metadata.creationTimestamp;
    const sorted = [...events.values()].sort((a, b) => Date.parse(when(b)) - Date.parse(when(a)));
    if (!sorted.length) { fill(this._panel, h("p", { class: "empty" }, "No events are known of this object.")); return; }
    fill(this._panel, h("ol", { class: "timeline" }, sorted.map((event) => h("li", { class: event.type === "Warning" ? "warn" : "" },
      h("div", { class: "timeline-head" },
        h("strong", {}, event.reason || event.type),
        event.count > 1 ? h("span", { class: "badge" }, `×${event.count}`) : null,
        h("span", { class: "grow" }),
        h("time", { datetime: when(event), title: when(event) }, `${age(when(event))} ago`)),
      h("p", {}, event.message || ""),
      h("p", { class: "hint" }, event.reportingComponent || (event.source && event.source.component) || "")))));
  }

  async _showHistory(before = "") {
    const { signal } = this._inner;
    try {
      const page = await getJson(`history${this._path}${before ? `?before=${before}` : ""}`, { signal });
      // What was seen once stays for as long as this object is open, also when the store forgets it.
      page.versions.forEach((version) => this._versions.set(version.resourceVersion, version));
      this._historyEnd = before || !this._historyEnd ? page.end : this._historyEnd;
      if (this._tab === "history") this._fillHistory();
    } catch (error) {
      this._failed(error);
    }
  }

  _fillHistory() {
    const versions = [...this._versions.values()].sort((a, b) => Number(b.resourceVersion) - Number(a.resourceVersion));
    const oldest = versions[versions.length - 1];
    const ending = {
      created: "The object was created with the oldest version here.",
      compacted: "The store has forgotten what was before.",
    }[this._historyEnd];
    fill(this._panel,
      h("ol", { class: "versions" }, versions.map((version, at) => this._version(version, versions[at + 1]))),
      ending ? h("p", { class: "hint" }, ending)
        : h("button", { class: "button", type: "button", onclick: () => this._showHistory(oldest.resourceVersion) }, "Older versions"));
  }

  _version(version, earlier) {
    const lines = earlier ? hunks(diffLines(earlier.yaml, version.yaml)) : null;
    const added = lines ? lines.filter((line) => line && line[0] === "+").length : 0;
    const removed = lines ? lines.filter((line) => line && line[0] === "-").length : 0;
    return h("li", {},
      h("div", { class: "timeline-head" },
        h("strong", {}, version.by.join(", ") || "unknown"),
        lines ? h("span", { class: "badge plus", title: "lines added" }, `+${added}`) : h("span", { class: "badge" }, "oldest"),
        lines ? h("span", { class: "badge minus", title: "lines removed" }, `−${removed}`) : null,
        h("span", { class: "grow" }),
        h("span", { class: "hint" }, `version ${version.resourceVersion}`),
        version.time ? h("time", { datetime: version.time, title: version.time }, `${age(version.time)} ago`) : null),
      lines
        ? h("pre", { class: "diff", tabindex: "0", "aria-label": `Changes of version ${version.resourceVersion}` }, lines.map(diffLine))
        : h("details", {}, h("summary", {}, "The whole object"), h("pre", { class: "yaml" }, highlighted(version.yaml))));
  }
}

function diffLine(line) {
  if (line === null) return h("span", { class: "line skip-line" }, "⋯\n");
  const kind = { "+": "plus", "-": "minus", " ": "" }[line[0]];
  return h("span", { class: `line ${kind}` }, `${line[0]} `, marked(line[1]), "\n");
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    toast("The browser does not let pages copy.", "warn");
  }
}
