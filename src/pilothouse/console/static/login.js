// Signing in: by a ticket in the address, by a token or a kubeconfig that is pasted, or by the browser's certificate.

import { getJson, hasToken, setToken, whoAmI } from "./api.js";
import { fill, h } from "./dom.js";

/** Redeem the ticket in the address, if there is one, and take it out of there. What went wrong, or nothing. */
export async function takeTicket() {
  const found = /^#ticket=([\w-]+)$/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", "#/");
  try {
    const session = await getJson("login", { method: "POST", body: found[1], type: "text/plain" });
    setToken(session.token);
    return "";
  } catch (error) {
    return error.message;
  }
}

/** Show the form until somebody is signed in. */
export function showLogin(main, problem, done) {
  const field = h("textarea", {
    id: "credential", rows: "6", spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    "aria-describedby": "credential-help login-problem",
  });
  const message = h("p", { class: "problem", id: "login-problem", role: "alert" }, problem);
  const button = h("button", { class: "button primary", type: "submit" }, "Sign in");
  const form = h("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      const { token, why } = tokenIn(field.value);
      message.textContent = why;
      if (!token) return;
      button.disabled = true;
      setToken(token);
      try {
        const name = await whoAmI();
        if (name) { done(name); return; }
        message.textContent = "The server does not know this token.";
      } catch (error) {
        message.textContent = error.message;
      }
      setToken("");
      button.disabled = false;
    },
  },
  h("label", { for: "credential" }, "Token or kubeconfig"),
  field,
  h("p", { class: "hint", id: "credential-help" },
    "It stays in this tab until you close it or sign out, and goes to this server only."),
  message, button);
  fill(main, h("section", { class: "card login", "aria-labelledby": "login-title" },
    h("img", { src: "icon.svg", alt: "", width: "56", height: "56" }),
    h("h1", { id: "login-title" }, "Come aboard"),
    h("p", {}, "On the machine where the server runs, ", h("code", {}, "pilothouse console"),
      " prints an address that signs you in. A client certificate in your browser works as well."),
    form));
  field.focus();
}

/** The token in what was pasted: a token itself, or the current user's of a kubeconfig. */
export function tokenIn(text) {
  const pasted = text.trim();
  if (!pasted) return { why: "Paste a token or a kubeconfig." };
  if (!/\s/.test(pasted)) return { token: pasted };
  const users = new Map(), contexts = new Map();
  let section = "", name = "", token = "", user = "", current = "", certificates = false;
  const keep = () => {
    if (section === "users" && token) users.set(name, token);
    if (section === "contexts" && user) contexts.set(name, user);
    name = token = user = "";
  };
  for (const line of pasted.split("\n")) {
    const top = /^([\w-]+):\s*(.*)$/.exec(line);
    if (top) {
      keep();
      section = top[1];
      if (section === "current-context") current = unquoted(top[2]);
      continue;
    }
    if (/^\s*- /.test(line)) keep();
    const pair = /^[\s-]*([\w-]+):\s*(\S.*)$/.exec(line);
    if (!pair) continue;
    if (pair[1] === "name") name = unquoted(pair[2]);
    if (pair[1] === "token") token = unquoted(pair[2]);
    if (pair[1] === "user") user = unquoted(pair[2]);
    if (pair[1].startsWith("client-certificate")) certificates = true;
  }
  keep();
  const found = users.get(contexts.get(current)) || [...users.values()][0];
  if (found) return { token: found };
  return {
    why: certificates
      ? "This kubeconfig has a client certificate, which a page cannot use. Import the certificate into your browser, or run `pilothouse console` for a way in."
      : "There is no token in this kubeconfig.",
  };
}

function unquoted(text) {
  return text.trim().replace(/^(["'])(.*)\1$/, "$2");
}

/** Sign in without asking, where that is possible: a name, or null. */
export async function knownUser() {
  const name = await whoAmI();
  if (!name && hasToken()) setToken("");
  return name;
}
