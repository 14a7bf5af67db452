"""The errors that become a ``Status`` answer, each with the code, reason, details and words of kube-apiserver.

    StatusError                the Status is the data, the functions below are its vocabulary; a class for each reason
                               that callers tell apart (NotFound, AlreadyExists, Conflict, ...)
      404 not_found            409 already_exists, conflict, apply_conflict     410 gone, expired
      400 bad_request          401 unauthorized   403 forbidden                 405 method_not_supported
      406 not_acceptable       413 too_large      415 unsupported_media_type    422 invalid
      429 too_many_requests    500 internal_error, generic                      503 unavailable   504 timeout

Code below the endpoints raises these; the endpoint that caught one encodes ``error.status`` as asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pilothouse.machinery.field_errors import FieldError, aggregate, listed
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupKind, GroupResource


class StatusError(Exception):
    """A failure that the client is to be told about in a ``Status`` object."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: dict[str, Any] = {}
        self.errs: Sequence[FieldError] = ()
        """What was wrong with which field, where that is the reason."""

    @property
    def status(self) -> dict[str, Any]:
        """The ``Status`` object, fields in the order of kube-apiserver."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if not self.message:
            del status["message"]
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def retry_after(self) -> int:
        """Seconds for the ``Retry-After`` header; 0 for none."""
        return int((self.details or {}).get("retryAfterSeconds", 0))


class NotFound(StatusError):
    """There is no such object or resource."""


class AlreadyExists(StatusError):
    """An object of that name is there."""


class Conflict(StatusError):
    """The object is not what the writer took it for."""


class Gone(StatusError):
    """What was asked for is no longer available: ``Gone`` or ``Expired``."""


class Unauthorized(StatusError):
    """Nobody is known to ask."""


class Forbidden(StatusError):
    """Who asks may not."""


class BadRequest(StatusError):
    """The request cannot be understood."""


class Invalid(StatusError):
    """The object breaks a rule."""


class TooManyRequests(StatusError):
    """Later: the server, or a budget, has no room now."""


class Timeout(StatusError):
    """It took too long; whether it was done is not known."""


class Unavailable(StatusError):
    """The server cannot serve this now."""


_CLASSES: Final[dict[str, type[StatusError]]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Gone,
    "Expired": Gone,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "BadRequest": BadRequest,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "Timeout": Timeout,
    "ServerTimeout": Timeout,
    "ServiceUnavailable": Unavailable,
}


def from_status(status: Mapping[str, Any]) -> StatusError:
    """The error that a ``Status`` tells of, of the class that belongs to its reason."""
    reason = status.get("reason") or ""
    made = _CLASSES.get(reason, StatusError)(
        status.get("code") or 500, reason, status.get("message") or "", status.get("details")
    )
    made.metadata = dict(status.get("metadata") or {})
    return made


def _details(group: str, kind: str, name: str = "", **more: Any) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value}


def has_cause(error: StatusError, reason: str) -> bool:
    """Whether a Status names this among its causes."""
    return any(cause.get("reason") == reason for cause in (error.details or {}).get("causes") or ())


def not_found(resource: GroupResource, name: str) -> StatusError:
    details = _details(resource.group, resource.resource, name)
    return NotFound(404, "NotFound", f"{resource} {quote(name)} not found", details)


def not_found_anything() -> StatusError:
    """For a path that is no resource of a known group."""
    return NotFound(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: GroupResource, name: str) -> StatusError:
    details = _details(resource.group, resource.resource, name)
    return AlreadyExists(409, "AlreadyExists", f"{resource} {quote(name)} already exists", details)


def generate_name_conflict(resource: GroupResource, name: str, retry_after: int) -> StatusError:
    message = (
        f"{resource} {quote(name)} already exists, the server was not able to generate a unique name for the object"
    )
    details = _details(resource.group, resource.resource, name, retryAfterSeconds=retry_after)
    return AlreadyExists(409, "AlreadyExists", message, details)


def conflict(resource: GroupResource, name: str, why: str) -> StatusError:
    message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {why}"
    return Conflict(409, "Conflict", message, _details(resource.group, resource.resource, name))


def apply_conflict(message: str, causes: Sequence[dict[str, Any]]) -> StatusError:
    return Conflict(409, "Conflict", message, {"causes": list(causes)} if causes else {})


def gone(message: str) -> StatusError:
    return Gone(410, "Gone", message)


def expired(message: str) -> StatusError:
    return Gone(410, "Expired", message)


def bad_request(message: str) -> StatusError:
    return BadRequest(400, "BadRequest", message)


def unauthorized(message: str = "") -> StatusError:
    return Unauthorized(401, "Unauthorized", message or "not authorized")


def forbidden(resource: GroupResource, name: str, why: str) -> StatusError:
    if not resource.resource and not resource.group:
        message = f"forbidden: {why}"
    elif not name:
        message = f"{resource} is forbidden: {why}"
    else:
        message = f"{resource} {quote(name)} is forbidden: {why}"
    return Forbidden(403, "Forbidden", message, _details(resource.group, resource.resource, name))


def method_not_supported(resource: GroupResource, action: str) -> StatusError:
    message = f"{action} is not supported on resources of kind {quote(str(resource))}"
    return StatusError(405, "MethodNotAllowed", message, _details(resource.group, resource.resource))


def method_not_allowed() -> StatusError:
    """For a path that exists but does not take this HTTP method."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    listed = ", ".join(accepted)
    message = f"only the following media types are accepted: {listed}"
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Iterable[str], given: str) -> StatusError:
    listed = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def invalid(kind: GroupKind, name: str, errors: Sequence[FieldError]) -> StatusError:
    errors = listed(errors, repeated=True)
    causes = [{"reason": e.type, "message": e.body, "field": e.field} for e in errors]
    message = f"{kind} {quote(name)} is invalid"
    if errors:
        message += ": " + aggregate(str(e) for e in errors)
    details = _details(kind.group, kind.kind, name, causes=causes)
    refusal = Invalid(422, "Invalid", message, details)
    refusal.errs = errors
    return refusal


def too_many_requests(message: str, retry_after: int) -> StatusError:
    details = {"retryAfterSeconds": retry_after} if retry_after else {}
    return TooManyRequests(429, "TooManyRequests", message, details)


def internal_error(why: str) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


def generic(message: str) -> StatusError:
    """A failure kube-apiserver has no Status for: code 500 and the bare message."""
    return StatusError(500, "", message)


def unavailable(why: str) -> StatusError:
    return Unavailable(503, "ServiceUnavailable", why)


def insufficient_storage(why: str) -> StatusError:
    """For a write that found no room; kube-apiserver passes on what etcd says in that case."""
    return StatusError(507, "InsufficientStorage", why)


def timeout(message: str, retry_after: int) -> StatusError:
    details = {"retryAfterSeconds": retry_after} if retry_after else {}
    return Timeout(504, "Timeout", f"Timeout: {message}", details)


_SERVER_RESPONSES: Final = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
_QUOTED_RESPONSES: Final = {403: "Forbidden", 406: "NotAcceptable", 415: "UnsupportedMediaType"}
"""Those in which the words of the server are kept."""


def server_response(code: int, resource: GroupResource, name: str, text: str) -> StatusError:
    """What another server answered, in place of an answer of our own."""
    if code in _QUOTED_RESPONSES and (code != 406 or text not in ("", "unknown")):
        reason, message = _QUOTED_RESPONSES[code], text
    elif code in _SERVER_RESPONSES:
        reason, message = _SERVER_RESPONSES[code]
    elif code >= 500:
        reason, message = (
            "InternalError",
            f"an error on the server ({quote(text)}) has prevented the request from succeeding",
        )
    else:
        reason = ""
        message = f"the server responded with the status code {code} but did not return more information"
    shown = f"{message} ( {resource} {name})"
    return StatusError(code, reason, shown, _details(resource.group, resource.resource, name))
