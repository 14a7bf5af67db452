"""Query and path parameters: each option type of the API gives one parameter a field.

The descriptions of deletion options come with the API's documentation; options that are no part of any object have none
there and are described here. kubectl's own suite greps the document for some of their words ("list of returned",
"Watch for changes to the described resources").
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from pilothouse.apis import documentation, types
from pilothouse.machinery.schema.types import ListOf, Scalar, Type

_TYPES: Final = {"string": "string", "bool": "boolean", "int32": "integer", "int64": "integer"}


class Parameter(NamedTuple):
    """One parameter; ``where`` is ``query`` or ``path``."""

    name: str
    where: str
    type: str
    description: str

    @property
    def required(self) -> bool:
        return self.where == "path"


PRETTY: Final = Parameter(
    "pretty",
    "query",
    "string",
    "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or"
    " command-line HTTP tool (curl and wget).",
)
NAMESPACE: Final = Parameter(
    "namespace", "path", "string", "object name and auth scope, such as for teams and projects"
)
PATH: Final = Parameter("path", "path", "string", "path to the resource")


def name_of(kind: str) -> Parameter:
    """The name of the object that a path is about."""
    return Parameter("name", "path", "string", f"name of the {kind}")


@cache
def options(type_name: str, without: tuple[str, ...] = ()) -> tuple[Parameter, ...]:
    """The parameters of an option type. Fields that are objects cannot be given in a query."""
    return tuple(
        Parameter(field.name, "query", kind, _describe(type_name, field.name))
        for field in types.struct(type_name).fields.values()
        if field.name not in ("kind", "apiVersion", *without) and (kind := _query_type(field.type))
    )


def _query_type(kind: Type) -> str:
    item = kind.item if isinstance(kind, ListOf) else kind
    return _TYPES.get(item.kind, "") if isinstance(item, Scalar) else ""


def _describe(type_name: str, field: str) -> str:
    text = documentation.describe(type_name, field)
    if not text and field == "dryRun":
        text = documentation.describe("meta.v1.DeleteOptions", field)
    return text or _TEXTS.get(f"{type_name.rpartition('.')[2]}.{field}") or _TEXTS.get(field, "")


_TEXTS: Final = {
    "dryRun": "With 'All' the request is carried out in every respect but persisted nowhere.",
    "fieldManager": "The name under which the changed fields are recorded: at most 128 printable characters.",
    "PatchOptions.fieldManager": "The name under which the changed fields are recorded: at most 128 printable"
    " characters. Apply requests must give one; for other patches it is optional.",
    "fieldValidation": "What to do about unknown and duplicate fields in the request: 'Ignore' drops them, 'Warn' (the"
    " default) drops them and sends a warning for each, 'Strict' refuses the request with all of them listed.",
    "force": "Whether an apply request takes over fields that other managers own instead of reporting conflicts. Only"
    " apply requests may set it.",
    "labelSelector": "Restricts the list of returned objects to those whose labels match this selector. Everything"
    " matches by default.",
    "fieldSelector": "Restricts the list of returned objects to those whose fields match this selector. Everything"
    " matches by default.",
    "watch": "Watch for changes to the described resources: additions, changes and removals are streamed instead of"
    " a list.",
    "allowWatchBookmarks": "Whether a watch may carry BOOKMARK events, which only tell how far it has come. The server"
    " decides when it sends them, if at all. Without meaning for other requests.",
    "resourceVersion": "A constraint on the versions that the answer may be made from. See"
    " https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.",
    "resourceVersionMatch": "How resourceVersion is applied to a list: 'NotOlderThan' or 'Exact'. Lists that give a"
    " resourceVersion should give this as well. See"
    " https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.",
    "timeoutSeconds": "Ends the list or watch after this many seconds, busy or not.",
    "limit": "The most objects to return at once. If there are more, the answer's metadata has a `continue` value for"
    " the next request, which otherwise must be the same. An answer may hold fewer objects than the limit, even none,"
    " and still be continued. All parts together show the objects as they were at the first. Not for watches.",
    "continue": "The `continue` value of the previous answer to the same list request, to get the next part. Values"
    " expire after some minutes; the server then answers 410 ResourceExpired with a fresh value, from which the list"
    " goes on with the objects as they are by then. Clients that need one consistent view start again instead. Not for"
    " watches.",
    "sendInitialEvents": "Whether a watch begins with an event for each existing object, followed by a bookmark with"
    ' the annotation `"k8s.io/initial-events-end": "true"`. It needs `resourceVersionMatch=NotOlderThan`.',
    "shardSelector": "Restricts the answer to objects whose hashed field lies in one of the given ranges:"
    " `shardRange(object.metadata.uid, '0x0', '0x8000000000000000')`, several of them joined by `||`. Fields are"
    " object.metadata.uid and object.metadata.namespace. Alpha; needs the feature gate ShardedListAndWatch.",
    "container": "The container to use. May be left out when the pod has only one.",
    "command": "The command to run and its arguments, each as a parameter of its own. No shell is involved.",
    "stdin": "Whether to pass standard input to the container. Defaults to false.",
    "PodAttachOptions.stdout": "Whether to receive the container's standard output. Defaults to true.",
    "PodAttachOptions.stderr": "Whether to receive the container's standard error. Defaults to true.",
    "stdout": "Whether to receive the command's standard output.",
    "stderr": "Whether to receive the command's standard error.",
    "tty": "Whether a terminal is allocated for the call. Defaults to false.",
    "PodLogOptions.container": "The container whose log is wanted. May be left out when the pod has only one.",
    "follow": "Whether to keep sending the log as it grows. Defaults to false.",
    "previous": "Whether to return the log of the container's previous instance. Defaults to false.",
    "sinceSeconds": "Return only what was logged in this many seconds before now.",
    "timestamps": "Whether each line begins with its RFC 3339 time. Defaults to false.",
    "tailLines": "The number of lines to return from the log's end. Everything is returned by default.",
    "limitBytes": "The number of bytes after which the answer ends, more or less.",
    "insecureSkipTLSVerifyBackend": "Whether to connect to the kubelet without verifying its certificate, which leaves"
    " the origin of the log unproven.",
    "stream": "The stream to return: 'All' (the default), 'Stdout' or 'Stderr'.",
    "ports": "The ports to forward; required for WebSocket connections.",
    "path": "The path, with its query, to request from the object behind the proxy.",
}  # fmt: skip
