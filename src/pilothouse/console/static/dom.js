// Making elements without markup in strings: what comes from the cluster is only ever text.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `props`: on… are listeners, `class` and others attributes (false and null leave them out). */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  apply(element, props);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The same for drawings. */
export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  apply(element, props);
  element.append(...children);
  return element;
}

function apply(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
}

/** Put other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Tell the user something for a moment; screen readers hear it too. */
export function toast(text, kind = "") {
  const shown = h("p", { class: `toast ${kind}` }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

/** How long ago, as kubectl says it. */
export function age(then, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(then)) / 1000));
  if (Number.isNaN(seconds)) return "";
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60), days = Math.floor(hours / 24);
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return seconds % 60 ? `${minutes}m${seconds % 60}s` : `${minutes}m`;
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return minutes % 60 ? `${hours}h${minutes % 60}m` : `${hours}h`;
  if (hours < 48) return `${hours}h`;
  if (days < 8) return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
  return days < 730 ? `${days}d` : `${Math.floor(days / 365)}y`;
}

/** Seconds for people. */
export function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(seconds < 0.01 ? 2 : seconds < 0.1 ? 1 : 0)} ms`;
  return `${seconds.toFixed(2)} s`;
}

/** Bytes for people. */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let at = -1;
  do { count /= 1000; at += 1; } while (count >= 1000 && at < units.length - 1);
  return `${count.toFixed(count < 10 ? 1 : 0)} ${units[at]}`;
}

/** Tabs that arrow keys move between. `tabs`: [name, title]; `choose(name)` shows one. */
export function tabBar(label, tabs, chosen, choose) {
  const buttons = tabs.map(([name, title]) => h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === chosen),
    tabindex: name === chosen ? "0" : "-1", onclick: () => choose(name),
  }, title));
  return h("div", {
    class: "tabs", role: "tablist", "aria-label": label,
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = tabs.findIndex(([name]) => name === chosen);
      choose(tabs[(at + step + tabs.length) % tabs.length][0], true);
      event.preventDefault();
    },
  }, buttons);
}

/** Call at most once a frame, however often it is asked for. */
export function everyFrame(render) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; render(); });
  };
}
