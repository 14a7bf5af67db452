"""What a request is about, read from its path and method alone, exactly as kube-apiserver resolves every path shape.

    /api/v1/namespaces/a/pods/b/log    get  "" v1 pods b log in namespace a
    /apis/apps/v1/watch/deployments    watch (legacy)
    /healthz                           not about a resource: verb is the lower-case method

Authorization, audit, flow control and routing all work from this one reading, so they cannot disagree.
"""

from __future__ import annotations

from typing import Final

from pilothouse.endpoints.query import Query
from pilothouse.machinery import errors, fields, labels, names
from pilothouse.machinery.gvk import GroupVersion

_VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_NO_GROUP_VERSION: Final = GroupVersion("", "")


class BadPath(ValueError):
    """A path that starts like a resource's and does not go on."""


class RequestInfo:
    """The reading of one request. It is kept with the request line, for all requests that say the same."""

    __slots__ = (
        "counted", "fitting", "group", "group_version", "is_resource", "name", "namespace", "options", "parts", "path",
        "prefix", "question", "resource", "subresource", "verb", "version",
    )  # fmt: skip

    def __init__(self, path: str, verb: str, options: Query) -> None:
        self.path = path
        self.verb = verb
        self.options = options
        """The query string; nobody may change it."""
        self.is_resource = False
        self.prefix = ""
        self.group = ""
        self.version = ""
        self.namespace = ""
        self.resource = ""
        self.subresource = ""
        self.name = ""
        self.parts: list[str] = []
        self.group_version = _NO_GROUP_VERSION
        self.question: object = None
        """What the authorizer was last asked about it, which is the same as long as the same user asks."""
        self.fitting: object = None
        """The endpoint that such requests were found to fit, path and method."""
        self.counted: object = None
        """As what such requests are counted."""


def resolve(method: str, path: str, query: Query) -> RequestInfo:
    """Read a request. Raises ``BadPath`` where kube-apiserver cannot make sense of it either."""
    info = RequestInfo(path, method.lower(), query)
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis") or path.startswith("//"):
        return info
    info.prefix = parts[0]
    at = 1
    if parts[0] == "apis":
        if len(parts) < 4:
            return info
        info.group = parts[1]
        at = 2
    info.is_resource = True
    info.version = parts[at]
    info.group_version = GroupVersion(info.group, info.version)
    parts = parts[at + 1 :]
    info.verb = _VERBS.get(method, "")
    if parts[0] in ("watch", "proxy"):
        if len(parts) < 2:
            raise BadPath("unable to determine kind and namespace from url")
        info.verb = parts[0]
        parts = parts[1:]
    if parts[0] == "namespaces" and len(parts) > 1:
        info.namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    info.parts = parts
    info.resource = parts[0]
    if len(parts) > 1:
        info.name = parts[1]
        if len(parts) > 2 and info.verb != "proxy":
            info.subresource = parts[2]
    if not info.name:
        _resolve_collection(info, query)
    return info


def _resolve_collection(info: RequestInfo, query: Query) -> None:
    """Without a name, a get is a list or a watch and a delete deletes a collection."""
    if info.verb == "get":
        watch = query.first("watch")
        info.verb = "list" if watch is None or watch.lower() in ("false", "0") else "watch"
        selected = _selected_name(query)
        if selected:
            info.name = selected
    elif info.verb == "delete":
        info.verb = "deletecollection"


def _selected_name(query: Query) -> str:
    """A list of exactly one named object is authorized like that object.

    Read as the list itself reads it: a selector that only looks like naming an object must not narrow the question, and
    where any option cannot be read, none is.
    """
    selection = query.selection
    if "metadata.name" not in selection.by_field:
        return ""
    try:
        terms = selection.fields.requirements
        selection.check_labels()
        for number in ("limit", "timeoutSeconds"):
            query.integer(number)
    except (fields.SelectorError, labels.SelectorError, errors.StatusError):
        return ""
    name = next((term.value for term in terms if term.field == "metadata.name" and term.operator == fields.EQUALS), "")
    return "" if names.check_path_segment_name(name) else name
