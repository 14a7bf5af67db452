// What the server says when it refuses.

import { ApiError } from "./api.js";
import { h } from "./dom.js";

/** Why the server did not do it, with every cause it gives. */
export function refusal(error) {
  if (!(error instanceof ApiError)) return h("p", {}, error.message);
  const causes = (error.status.details && error.status.details.causes) || [];
  if (error.code === 403) return h("p", {}, "You may not do this: ", error.message);
  if (!causes.length) return h("p", {}, error.message);
  return h("div", {}, h("p", {}, error.status.reason || "Refused"),
    h("ul", {}, causes.map((cause) => h("li", {}, cause.field ? h("code", {}, cause.field) : null, cause.field ? " " : "", cause.message))));
}
