"""The coordinates of the API: groups, versions, kinds and resources, written as kube-apiserver writes them."""

from __future__ import annotations

from typing import NamedTuple


class GroupVersion(NamedTuple):
    """An API group at one version; its text is an object's ``apiVersion``."""

    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupKind(NamedTuple):
    """A kind whatever its version, as error messages name it: ``Deployment.apps`` or ``Pod``."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupResource(NamedTuple):
    """A resource whatever its version, as error messages name it: ``deployments.apps`` or ``pods``."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupVersionKind(NamedTuple):
    """One kind at one version."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)


class GroupVersionResource(NamedTuple):
    """One resource at one version."""

    group: str
    version: str
    resource: str

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)


def parse_group_version(text: str) -> GroupVersion:
    """Read an ``apiVersion``; ``v1`` is the core group. More than one slash raises ``ValueError``."""
    if text in ("", "/"):
        return GroupVersion("", "")
    group, slash, version = text.partition("/")
    if not slash:
        return GroupVersion("", text)
    if "/" in version:
        raise ValueError(f"unexpected GroupVersion string: {text}")
    return GroupVersion(group, version)
