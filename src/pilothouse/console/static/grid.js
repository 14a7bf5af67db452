// A table of any length: only the rows in view exist. Arrow keys, Page Up and Down, Home and End move; Enter opens.

import { everyFrame, fill, h } from "./dom.js";

const ROW = 34;
const AHEAD = 8;
const GAP = 14;

export class Grid {
  /** `label` for screen readers; `open(row)` when one is chosen; `cellsOf(row)` gives texts or elements. */
  constructor({ label, open, cellsOf, classOf = () => "" }) {
    this._open = open;
    this._cellsOf = cellsOf;
    this._classOf = classOf;
    this._rows = [];
    this._at = -1;
    this._selected = "";
    this._head = h("div", { class: "grid-head", role: "row", "aria-rowindex": "1" });
    this._body = h("div", { class: "grid-body", role: "rowgroup" });
    this.element = h("div", {
      class: "grid", role: "grid", tabindex: "0", "aria-label": label, "aria-readonly": "true",
      onscroll: () => this._later(), onkeydown: (event) => this._key(event), onfocus: () => this._focused(),
    }, h("div", { role: "rowgroup", class: "grid-top" }, this._head), this._body);
    this._later = everyFrame(() => this._render());
    this._sizes = new ResizeObserver(() => this._later());
    this._sizes.observe(this.element);
  }

  close() {
    this._sizes.disconnect();
  }

  /** Columns: {name, width, share}: at least so many pixels wide, and a share of what is left. */
  setColumns(columns) {
    this._template = columns.map((column) => `minmax(${column.width}px, ${column.share}fr)`).join(" ");
    const least = columns.reduce((sum, column) => sum + column.width + GAP, GAP);
    this._head.style.gridTemplateColumns = this._template;
    this._head.style.minWidth = this._body.style.minWidth = `${least}px`;
    this.element.setAttribute("aria-colcount", String(columns.length));
    fill(this._head, columns.map((column) => h("div", { role: "columnheader", title: column.help || null }, column.name)));
    this._later();
  }

  setRows(rows) {
    this._rows = rows;
    this._body.style.height = `${rows.length * ROW}px`;
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this._later();
  }

  /** Mark the row that is open. */
  select(key) {
    this._selected = key;
    this._later();
  }

  refresh() {
    this._later();
  }

  toTop() {
    this.element.scrollTop = 0;
    this._at = -1;
  }

  _render() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - AHEAD);
    const last = Math.min(this._rows.length, first + Math.ceil(this.element.clientHeight / ROW) + 2 * AHEAD);
    const shown = [];
    for (let at = first; at < last; at += 1) shown.push(this._rowAt(at));
    fill(this._body, shown);
    const active = this._at >= first && this._at < last ? `row-${this._at}` : null;
    if (active) this.element.setAttribute("aria-activedescendant", active);
    else this.element.removeAttribute("aria-activedescendant");
  }

  _rowAt(at) {
    const row = this._rows[at];
    const marks = [at === this._at ? "active" : "", row.key === this._selected ? "selected" : "", this._classOf(row)];
    const element = h("div", {
      role: "row", id: `row-${at}`, class: `grid-row ${marks.join(" ")}`, "aria-rowindex": String(at + 2),
      "aria-selected": String(row.key === this._selected),
      onclick: () => { this._at = at; this._open(row); this._later(); },
    }, this._cellsOf(row).map((cell) => h("div", { role: "gridcell" }, cell)));
    element.style.transform = `translateY(${at * ROW}px)`;
    element.style.gridTemplateColumns = this._template;
    return element;
  }

  _focused() {
    if (this._at < 0 && this._rows.length) this._move(0);
  }

  _key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const to = {
      ArrowDown: this._at + 1, ArrowUp: this._at - 1, PageDown: this._at + page, PageUp: this._at - page,
      Home: 0, End: this._rows.length - 1,
    }[event.key];
    if (to !== undefined) {
      this._move(to);
      event.preventDefault();
    } else if (event.key === "Enter" && this._rows[this._at]) {
      this._open(this._rows[this._at]);
      event.preventDefault();
    }
  }

  _move(to) {
    this._at = Math.max(0, Math.min(this._rows.length - 1, to));
    const top = this._at * ROW, room = this.element.clientHeight - 2 * ROW;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top > this.element.scrollTop + room) this.element.scrollTop = top - room;
    this._later();
  }
}
