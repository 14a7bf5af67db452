"""Which kinds a server knows, and what messages call the scheme that knows them.

Each of the three servers has a scheme of its own: the one for definitions and the one for API services know their own
group only, the large one everything else. Options and the like are known with the versions of each.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apis import types
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema.types import Struct

_LARGE: Final = "pkg/api/legacyscheme/scheme.go:30"
_SMALL: Final = {
    "apiextensions.k8s.io": "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:56",
    "apiregistration.k8s.io": "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
}
CUSTOM_SCALES: Final = "scale"
"""The scheme of scales of custom resources, which knows nothing else."""
_NAMES: Final = {**_SMALL, CUSTOM_SCALES: "k8s.io/client-go/scale/util.go:146"}
_META: Final = "meta.k8s.io"
_OPTIONS: Final = frozenset(
    {"ListOptions", "GetOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "WatchEvent"}
)
_UNVERSIONED: Final = frozenset({"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"})
"""Known by their names alone."""


def find_kind(group: str, gvk: GroupVersionKind) -> Struct | None:
    """The type of a kind for the server of a group (or for ``CUSTOM_SCALES``); None where that knows no such kind."""
    if gvk.kind in _UNVERSIONED:
        return types.struct(f"meta.v1.{gvk.kind}")
    if group == CUSTOM_SCALES:
        known = gvk.kind == "Scale"
    elif group in _SMALL:
        known = gvk.group == group or (gvk.group == "" and (gvk.kind in _OPTIONS or gvk.kind == "DeleteOptions"))
    else:
        known = gvk.group not in _SMALL and gvk.group != _META
    if not known:
        return None
    if gvk.kind in _OPTIONS and gvk.version == "v1":
        return types.struct(f"meta.v1.{gvk.kind}")
    return types.find_kind(gvk)


def unknown_kind(group: str, gvk: GroupVersionKind) -> str:
    """What the server of a group says about a kind it does not know."""
    at = str(gvk.group_version)
    return f"no kind {quote(gvk.kind)} is registered for version {quote(at)} in scheme {quote(_name(group))}"


def unknown_internal_kind(knowing: str, group: str, kind: str) -> str:
    """What a scheme says about a kind of a group without a version that it does not know."""
    what = f"no kind {quote(kind)} is registered for the internal version of group {quote(group)}"
    return f"{what} in scheme {quote(_name(knowing))}"


def _name(group: str) -> str:
    return _NAMES.get(group, _LARGE)
