// YAML as text: the server reads and writes it, this page only shows it.

import { h } from "./dom.js";

/** The text without metadata.managedFields: the server keeps them where an update leaves them out. */
export function withoutManagedFields(text) {
  const kept = [];
  let inside = false;
  for (const line of text.split("\n")) {
    if (line === "  managedFields:") inside = true;
    else if (inside && !/^ {2}(-| )/.test(line)) inside = false;
    if (!inside) kept.push(line);
  }
  return kept.join("\n");
}

/** Lines with their parts marked for the eye. */
export function highlighted(text) {
  return text.replace(/\n$/, "").split("\n").map((line) => h("span", { class: "line" }, marked(line), "\n"));
}

/** The parts of a line. */
export function marked(line) {
  const found = /^(\s*(?:- )*)([^\s"'#-][^:]*|"[^"]*"|'[^']*'):(?=\s|$)(.*)$/.exec(line);
  if (found) return [found[1], h("span", { class: "y-key" }, found[2]), ":", value(found[3])];
  const item = /^(\s*(?:- )+)(.*)$/.exec(line);
  return item ? [item[1], value(item[2])] : [value(line)];
}

function value(text) {
  const plain = text.trim();
  if (!plain) return text;
  if (/^(true|false|null|~|-?\d+(\.\d+)?)$/.test(plain)) return h("span", { class: "y-number" }, text);
  if (/^(\||>)[+-]?\d?$/.test(plain) || plain === "{}" || plain === "[]") return h("span", { class: "y-mark" }, text);
  return h("span", { class: "y-text" }, text);
}

/** apiVersion, kind, and name and namespace of the metadata, as far as they are plain to see. */
export function identity(text) {
  const top = (key) => (new RegExp(`^${key}:\\s*["']?([^\\s"'#]+)`, "m").exec(text) || [])[1] || "";
  const metadata = (/^metadata:\s*\n((?:[ \t]+.*\n?|\s*\n)+)/m.exec(text) || [])[1] || "";
  const within = (key) => (new RegExp(`^ +${key}:\\s*["']?([^\\s"'#]+)`, "m").exec(metadata) || [])[1] || "";
  return { apiVersion: top("apiVersion"), kind: top("kind"), name: within("name"), namespace: within("namespace") };
}
