"""The variables of expressions in admission and their types.

object, oldObject            the states, as dynamic values; null where there is none
request                      the AdmissionRequest without its objects
namespaceObject              the namespace, for who has it; null for cluster-wide objects
authorizer                   asks about the requester; authorizer.requestResource about what is requested
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from pilothouse.cel.declarations import PlainStruct, Structs
from pilothouse.cel.environment import Environment
from pilothouse.cel.kubernetes import COMPATIBLE, base_environment
from pilothouse.cel.library.authorizing import AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE
from pilothouse.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of, struct

_STRINGS: Final = list_of(STRING)
_TEXTS: Final = map_of(STRING, STRING)


def _fields(*names: str) -> dict[str, Type]:
    return dict.fromkeys(names, STRING)


_KIND: Final = struct("kubernetes.GroupVersionKind")
_RESOURCE: Final = struct("kubernetes.GroupVersionResource")
_USER: Final = struct("kubernetes.UserInfo")
REQUEST: Final = struct("kubernetes.AdmissionRequest")
_METADATA: Final = struct("kubernetes.NamespaceMetadata")
_SPEC: Final = struct("kubernetes.NamespaceSpec")
_CONDITION: Final = struct("kubernetes.NamespaceCondition")
_STATUS: Final = struct("kubernetes.NamespaceStatus")
NAMESPACE: Final = struct("kubernetes.Namespace")
_TYPES: Final[Mapping[Type, Mapping[str, Type]]] = {
    _KIND: _fields("group", "version", "kind"),
    _RESOURCE: _fields("group", "version", "resource"),
    _USER: {**_fields("username", "uid"), "groups": _STRINGS, "extra": map_of(STRING, _STRINGS)},
    REQUEST: {
        **_fields("subResource", "requestSubResource", "name", "namespace", "operation"),
        "kind": _KIND,
        "resource": _RESOURCE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
    _METADATA: {
        **_fields("name", "generateName", "namespace", "UID", "resourceVersion"),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "creationTimestamp": TIMESTAMP,
        "deletionTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "generation": INT,
        "finalizers": _STRINGS,
    },
    _SPEC: {"finalizers": _STRINGS},
    _CONDITION: {**_fields("status", "type", "message", "reason"), "lastTransitionTime": TIMESTAMP},
    _STATUS: {"conditions": list_of(_CONDITION), "phase": STRING},
    NAMESPACE: {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS},
}
STRUCTS: Final = Structs({kind.name: PlainStruct(kind, fields) for kind, fields in _TYPES.items()})


@cache
def admission_environment(version: tuple[int, int] = COMPATIBLE, *, params: bool = False) -> Environment:
    """The environment of expressions that a version must understand."""
    variables = {
        "object": DYN,
        "oldObject": DYN,
        "request": REQUEST,
        "namespaceObject": NAMESPACE,
        "authorizer": AUTHORIZER_TYPE,
        "authorizer.requestResource": RESOURCE_CHECK_TYPE,
    }
    if params:
        variables["params"] = DYN
    return base_environment(version).extend(variables, STRUCTS)
