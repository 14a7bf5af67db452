"""The table of built-in resources: one row yields routes, discovery, OpenAPI and storage.

``resources.txt`` holds a line a group, version, resource and subresource, in the order discovery shows them. Rows are
data only; behaviour that belongs to one resource alone is its strategy (``apis/<group>``). ``legacy_resources.txt`` has
versions that are served no more; they are known once ``apis.legacy`` was asked for, and served where they are
switched on.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field, replace
from functools import cache

from pilothouse.apis import catalogue
from pilothouse.machinery.gvk import GroupKind, GroupResource, GroupVersion, GroupVersionKind, parse_group_version

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class End:
    """When a kind was deprecated and removed, as minor releases, and what has taken its place: ``apps/v1
    Deployment``.
    """

    deprecated: int
    removed: int
    replacement: str = ""


@dataclass(frozen=True, slots=True)
class Subresource:
    """``pods/status`` and its like. ``kind`` is what it takes and gives; it may be of another group."""

    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]
    end: End | None = None
    names_version: bool = False
    """Whether discovery names the kind's version even where it is the resource's."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource at one served version."""

    group: str
    version: str
    name: str
    singular: str
    kind: str
    package: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    key: str = ""
    """The storage key below the root, without slashes at its ends: ``services/specs``."""
    stored: GroupVersion = GroupVersion("", "")
    """The version kube-apiserver keeps it in; discovery publishes a hash of it."""
    hub: GroupVersion = GroupVersion("", "")
    """The version its objects have inside this server."""
    subresources: tuple[Subresource, ...] = ()
    legacy: bool = False
    """Whether the served release has it no more at this version."""
    end: End | None = None
    """Of legacy rows, as far as the kind's lifecycle tells."""

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.name)

    @property
    def group_kind(self) -> GroupKind:
        """The kind in messages about invalid objects: that of the group they are kept in."""
        return GroupKind(self.hub.group if self.hub.version else self.group, self.kind)

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def is_stored(self) -> bool:
        """Whether objects of it are kept at all: reviews and bindings are not."""
        return "list" in self.verbs and bool(self.key)

    @property
    def type_name(self) -> str:
        """The catalogue's name of its type: ``core.v1.Pod``."""
        return f"{self.package}.{self.version}.{self.kind}"

    @property
    def storage_version_hash(self) -> str:
        """What discovery shows of the stored version, so that migrations can tell when it changed."""
        text = f"{self.stored.group}/{self.stored.version}/{self.kind}"
        return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


@dataclass(slots=True)
class Version:
    """One version of a group. ``priority`` orders groups and versions in discovery, and stands in its APIService."""

    group: str
    version: str
    priority: tuple[int, int]
    resources: list[Resource] = field(default_factory=list)
    is_default: bool = True
    """Whether it is served unless told otherwise."""
    legacy: bool = False
    """Whether the served release has it no more."""
    custom: bool = False
    """Made of definitions rather than built in."""

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)


_PACKAGE_GROUPS = {"authentication.k8s.io": "authentication", "policy": "policy", "autoscaling": "autoscaling"}


def package_of(group: str) -> str:
    """The catalogue's package for a group that only lends its kinds to subresources."""
    return _PACKAGE_GROUPS[group]


@cache
def table() -> dict[GroupVersion, Version]:
    """All versions by group and version, in discovery's order."""
    versions: dict[GroupVersion, Version] = {}
    _read_rows("resources.txt", versions, legacy=False)
    return versions


@cache
def add_legacy() -> None:
    """Let the table know the versions that are served no more."""
    _read_rows("legacy_resources.txt", table(), legacy=True)
    for version in table().values():
        version.resources.sort(key=lambda row: row.name)


def legacy_row(name: str, version: GroupVersion) -> Resource | None:
    """The row of a resource at a version that is served no more, whether or not the table knows those."""
    found = _legacy_table().get(version)
    return next((row for row in found.resources if row.name == name), None) if found is not None else None


@cache
def _legacy_table() -> dict[GroupVersion, Version]:
    """A table of its own: others may go through that of all versions in this moment."""
    versions = {gv: replace(version, resources=[*version.resources]) for gv, version in table().items()}
    _read_rows("legacy_resources.txt", versions, legacy=True)
    return versions


def _read_rows(file: str, versions: dict[GroupVersion, Version], *, legacy: bool) -> None:
    group = package = ""
    current: Version | None = None
    for line in catalogue.read(file).splitlines():
        words = line.split()
        if line.startswith("group "):
            group, package = ("" if words[1] == "-" else words[1]), words[2]
        elif line.startswith("version "):
            switch, _, numbers = words[2].partition("=")
            first, _, second = numbers.partition(",")
            made = Version(group, words[1], (int(first), int(second)), is_default=switch == "on", legacy=legacy)
            current = versions.setdefault(made.group_version, made)
        elif current is not None and line.startswith("    "):
            last = current.resources[-1]
            kind = _kind(words[1], current.group_version)
            sub = Subresource(words[0], kind, _verbs(words[2]), _end(_flags(words[3:])), "/" in words[1])
            current.resources[-1] = _with_subresource(last, sub)
        elif current is not None:
            current.resources.append(_resource(words, current, package, versions, legacy=legacy))


def _kind(text: str, own: GroupVersion) -> GroupVersionKind:
    at, _, kind = text.rpartition(".") if "/" in text else ("", "", text)
    gv = parse_group_version(at) if at else own
    return GroupVersionKind(gv.group, gv.version, kind)


def _verbs(text: str) -> tuple[str, ...]:
    return ALL_VERBS if text == "all" else () if text == "-" else tuple(text.split(","))


def _flags(words: list[str]) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in words)


def _end(flags: dict[str, str]) -> End | None:
    if "removed" not in flags:
        return None
    version, _, kind = flags.get("use", "").rpartition(".")
    return End(int(flags["deprecated"]), int(flags["removed"]), f"{version} {kind}".strip())


def _resource(
    words: list[str], version: Version, package: str, known: dict[GroupVersion, Version], *, legacy: bool
) -> Resource:
    name, singular, kind, scope, verbs = words[:5]
    flags = _flags(words[5:])
    own = version.group_version
    stored = parse_group_version(flags["stored"]) if "stored" in flags else own
    listed = _verbs(verbs)
    return Resource(
        group=version.group,
        version=version.version,
        name=name,
        singular="" if singular == "-" else singular,
        kind=kind,
        package=package,
        namespaced=scope == "namespaced",
        verbs=listed,
        short_names=_words(flags.get("short", "")),
        categories=_words(flags.get("categories", "")),
        key=flags.get("key", name) if "delete" in listed else "",
        stored=stored,
        hub=_hub(own, stored, name, known),
        legacy=legacy,
        end=_end(flags),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


_WIDEST = {("certificates.k8s.io", "podcertificaterequests"): "v1beta1"}
"""The versions of kinds whose first version cannot say all that objects may have."""


def _hub(own: GroupVersion, stored: GroupVersion, name: str, known: dict[GroupVersion, Version]) -> GroupVersion:
    """Kinds shared with another group live in that group's version; otherwise the first version listed wins, if it can
    say all.
    """
    if stored.group != own.group:
        return stored
    if widest := _WIDEST.get((own.group, name)):
        return GroupVersion(own.group, widest)
    for gv, version in known.items():
        if gv.group == own.group and any(r.name == name for r in version.resources):
            return gv
    return own


def _with_subresource(resource: Resource, sub: Subresource) -> Resource:
    return replace(resource, subresources=(*resource.subresources, sub))


def versions_of(resource: Resource) -> list[Resource]:
    """The rows of all versions that show the same objects, the resource itself among them."""
    rows = (row for version in table().values() for row in version.resources if row.name == resource.name)
    return [row for row in rows if (row.hub, row.kind) == (resource.hub, resource.kind)]


def hub_row(resource: Resource) -> Resource:
    """The row of the version that objects are kept in."""
    if resource.hub == resource.group_version:
        return resource
    return next(row for row in table()[resource.hub].resources if row.name == resource.name)
