// Where everything begins: who is there, and what the address says to show.
//
//     #/objects/<kind>?namespace=…&q=…&open=<namespace>/<name>&tab=…
//     #/requests

import { ask, forgetDecisions, hasToken, setToken, whenSignedOut } from "./api.js";
import { fill, h, toast } from "./dom.js";
import { discover, sections } from "./kinds.js";
import { knownUser, showLogin, takeTicket } from "./login.js";
import { ObjectsView } from "./objects.js";
import { refusal } from "./refusal.js";
import { RequestsView } from "./requests.js";

const byId = (id) => document.getElementById(id);
const main = byId("main"), side = byId("kinds"), menu = byId("menu");
const REDISCOVER = 30000;

// Counts who came and went: what was asked for an earlier user is nothing to the present one.
let session = 0;
let kinds = [];
let view = null;
let discovering = 0;

function readRoute() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const parts = path.split("/").filter(Boolean);
  const options = new URLSearchParams(query);
  const [namespace = "", name = ""] = (options.get("open") || "").split("/");
  return {
    view: parts[0] === "requests" ? "requests" : "objects", kind: parts[1] || "pods", scope: options.get("namespace") || "",
    query: options.get("q") || "", namespace, name, tab: options.get("tab") || "",
  };
}

function navigate(route, quietly = false) {
  const options = new URLSearchParams();
  if (route.scope) options.set("namespace", route.scope);
  if (route.query) options.set("q", route.query);
  if (route.name) options.set("open", `${route.namespace}/${route.name}`);
  if (route.name && route.tab) options.set("tab", route.tab);
  const query = options.toString();
  const address = `#/objects/${route.kind}${query ? `?${query}` : ""}`;
  if (quietly) { history.replaceState(null, "", address); if (view && view.moveTo) view.moveTo(kindOf(route), route); }
  else location.hash = address;
}

function kindOf(route) {
  return kinds.find((kind) => kind.id === route.kind);
}

function render() {
  const route = readRoute();
  for (const link of byId("views").children) {
    if (link.dataset.view === route.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  side.hidden = route.view !== "objects";
  menu.hidden = route.view !== "objects";
  openMenu(false);
  const kind = kindOf(route);
  document.title = route.view === "requests" ? "Requests · Pilothouse" : `${route.name || (kind ? kind.kind : route.kind)} · Pilothouse`;
  for (const link of side.querySelectorAll("a")) {
    if (link.dataset.kind === route.kind) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (route.view === "objects" && view instanceof ObjectsView && kind && view.moveTo(kind, route)) return;
  closeView();
  if (route.view === "requests") view = new RequestsView(main);
  else if (kind) view = new ObjectsView(main, kind, route, navigate);
  else fill(main, h("p", { class: "notice" }, `The server has no ${route.kind}.`));
}

function closeView() {
  if (view) view.close();
  view = null;
}

function openMenu(open) {
  side.classList.toggle("open", open);
  menu.setAttribute("aria-expanded", String(open));
}

function fillSide() {
  const filter = h("input", { type: "search", placeholder: "Find a kind…", "aria-label": "Find a kind", oninput: () => show() });
  const list = h("nav", { "aria-label": "Kinds" });
  const show = () => {
    const word = filter.value.trim().toLowerCase();
    const fits = (kind) => !word || [kind.id, kind.kind.toLowerCase(), ...kind.shortNames].some((each) => each.includes(word));
    const current = readRoute();
    fill(list, sections(kinds.filter(fits)).map(([title, of]) => h("section", {},
      h("h2", {}, title),
      h("ul", {}, of.map((kind) => h("li", {}, h("a", {
        href: `#/objects/${kind.id}`, "data-kind": kind.id, title: kind.id,
        "aria-current": kind.id === current.kind && current.view === "objects" ? "page" : null,
        onclick: (event) => keepNamespace(event, kind),
      }, kind.kind)))))));
  };
  show();
  fill(side, filter, list);
}

/** From kind to kind one stays in one's namespace. */
function keepNamespace(event, kind) {
  const { scope } = readRoute();
  openMenu(false);
  if (!scope || !kind.namespaced) return;
  event.preventDefault();
  navigate({ kind: kind.id, scope });
}

async function refreshKinds() {
  const own = session;
  try {
    const found = await discover();
    if (own !== session) return;
    const same = JSON.stringify(found) === JSON.stringify(kinds);
    kinds = found;
    if (!same && !side.contains(document.activeElement)) fillSide();
  } catch { /* the next time */ }
}

/** Nothing of the user before is left, neither what is shown nor which kinds there are. */
function changeSession() {
  session += 1;
  clearInterval(discovering);
  closeView();
  kinds = [];
  forgetDecisions();
  return session;
}

async function begin(name) {
  const own = changeSession();
  byId("who").textContent = name;
  byId("who").title = "signed in as";
  byId("sign-out").hidden = !hasToken();
  byId("views").hidden = false;
  try {
    const found = await discover();
    if (own !== session) return;
    kinds = found;
  } catch (error) {
    if (own === session) fill(main, h("div", { class: "problem", role: "alert" }, refusal(error)));
    return;
  }
  fillSide();
  render();
  discovering = setInterval(refreshKinds, REDISCOVER);
}

function leave(problem) {
  changeSession();
  setToken("");
  byId("who").textContent = "";
  for (const id of ["views", "sign-out", "kinds", "menu"]) byId(id).hidden = true;
  showLogin(main, problem, begin);
}

async function start() {
  const problem = await takeTicket();
  if (problem) { leave(problem); return; }
  try {
    const had = hasToken();
    const name = await knownUser();
    if (name) await begin(name);
    else leave(had ? "Your session has ended: sign in again." : "");
  } catch (error) {
    leave(error.message);
  }
}

// The form comes at once: an answer that comes late would empty it while somebody is typing.
byId("sign-out").addEventListener("click", () => {
  ask("logout", { method: "POST" }).catch(() => { /* the tab forgets the token in any case */ });
  leave("");
});
byId("skip").addEventListener("click", () => main.focus());
menu.addEventListener("click", () => openMenu(!side.classList.contains("open")));
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  const search = byId("search");
  if (event.key === "/" && !typing && search) { search.focus(); event.preventDefault(); }
});
whenSignedOut(() => { if (view) { toast("Your session has ended."); leave("Your session has ended: sign in again."); } });
window.addEventListener("hashchange", () => { if (/^#ticket=/.test(location.hash)) start(); else if (kinds.length) render(); });
start();
