// The API as the user of this page sees it. The token lives in this tab's session and goes nowhere but here.

const KEY = "pilothouse-token";
let onSignedOut = () => {};

export class ApiError extends Error {
  constructor(status) {
    super(status.message || `the server answered ${status.code}`);
    this.status = status;
    this.code = status.code;
  }
}

export function setToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

export function whenSignedOut(listener) {
  onSignedOut = listener;
}

/** One request; the answer's Response, or an ApiError. */
export async function ask(path, { method = "GET", accept = "application/json", body, type, signal } = {}) {
  const headers = { Accept: accept };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (type) headers["Content-Type"] = type;
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError({ code: 0, message: "the server cannot be reached" });
  }
  if (answer.ok) return answer;
  // A late answer to a user who has gone does not end the session of the next.
  if (answer.status === 401 && token && token === sessionStorage.getItem(KEY)) onSignedOut();
  throw new ApiError(await statusOf(answer));
}

async function statusOf(answer) {
  const text = await answer.text();
  try {
    const status = JSON.parse(text);
    if (status.kind === "Status") return { ...status, code: answer.status };
  } catch { /* not every refusal is a Status, and some are in YAML */ }
  const message = /^message: (.*)$/m.exec(text);
  if (message) return { code: answer.status, message: message[1] };
  return { code: answer.status, message: text.trim().slice(0, 500) || answer.statusText };
}

export async function getJson(path, options) {
  return (await ask(path, options)).json();
}

export async function post(path, object) {
  return getJson(path, { method: "POST", body: JSON.stringify(object), type: "application/json" });
}

/** What the server warns of in an answer. */
export function warnings(answer) {
  const header = answer.headers.get("Warning") || "";
  return [...header.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map((found) => found[1].replace(/\\(.)/g, "$1"));
}

/** The JSON objects of a streamed answer, one a line. */
export async function* jsonLines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}

/** Who we are: a name, or null for nobody in particular. */
export async function whoAmI() {
  try {
    const review = await post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
      apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview",
    });
    const name = review.status.userInfo.username;
    return name === "system:anonymous" ? null : name;
  } catch (error) {
    if (error.code === 0) throw error;
    return null;
  }
}

const decisions = new Map();

/** Whether we may; asked of the server once a minute at most. */
export function may(verb, { group, resource, path }, namespace = "", name = "") {
  const key = JSON.stringify([verb, group, resource, path, namespace, name]);
  const known = decisions.get(key);
  if (known && known.until > Date.now()) return known.allowed;
  const spec = path
    ? { nonResourceAttributes: { verb, path } }
    : { resourceAttributes: { verb, group, resource, namespace, name } };
  const allowed = post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
    apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec,
  }).then((review) => review.status.allowed === true, () => false);
  decisions.set(key, { allowed, until: Date.now() + 60000 });
  return allowed;
}

export function forgetDecisions() {
  decisions.clear();
}
