"""Warnings about files of one volume that hide each other: the same path twice, or one below another.

Files are compared with each other, so a pod that lists absurdly many is not compared to the end: after ``_COMPARISONS``
no more is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object

_COMPARISONS: Final = 200_000


class _File(NamedTuple):
    """A path in a volume, and which of several sources it is from."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def warn_about_overlaps(volumes: list[Object]) -> Iterator[str]:
    """Warnings about all volumes that list their files."""
    return (found for found in islice(_compare(volumes), _COMPARISONS) if found)


def _compare(volumes: list[Object]) -> Iterator[str]:
    """One text a comparison, empty where there is nothing to say."""
    for volume in volumes:
        name = quote(volume.get("name", ""))
        for kind, shown, field in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if kind in volume:
                described = f"{shown} {quote(volume[kind].get(field, ''))}"
                yield from _warn(name, described, _files(volume[kind]))
        if "downwardAPI" in volume:
            yield from _warn(name, "DownwardAPI", _files(volume["downwardAPI"]))
        if "projected" in volume:
            yield from _warn_about_projection(name, volume["projected"].get("sources") or ())


def _files(source: Object, described: str = "") -> list[_File]:
    return [_File(item.get("path", "").rstrip("/"), described) for item in source.get("items") or ()]


def _warn(name: str, described: str, files: list[_File]) -> Iterator[str]:
    for position, file in enumerate(files):
        for other in islice(files, position):
            hit = _overlap(file, other)
            yield f"volume {name} ({described}): overlapping paths: {file} with {other}" if hit else ""


def _overlap(file: _File, other: _File) -> bool:
    if not file.path or not other.path:
        return False
    return (file.path + "/").startswith(other.path + "/") or (other.path + "/").startswith(file.path + "/")


def _warn_about_projection(name: str, sources: Any) -> Iterator[str]:
    files: list[_File] = []
    for source in sources:
        if not source:
            yield f"volume {name} (Projected) has no sources provided"
            continue
        for file in _projected_files(source):
            for other in files:
                hit = _overlap(file, other)
                yield f"volume {name} (Projected): overlapping paths: {file} with {other}" if hit else ""
            files.append(file)


def _projected_files(source: Object) -> list[_File]:
    """The files of the first source that says which they are."""
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if kind in source and source[kind].get("items"):
            return _files(source[kind], f"{shown} {quote(source[kind].get('name', ''))}")
    if "downwardAPI" in source and source["downwardAPI"].get("items"):
        return _files(source["downwardAPI"], "DownwardAPI")
    if "serviceAccountToken" in source:
        return [_File(source["serviceAccountToken"].get("path", "").rstrip("/"), "ServiceAccountToken")]
    if "clusterTrustBundle" in source:
        bundle = source["clusterTrustBundle"]
        described = f"ClusterTrustBundle {quote(bundle.get('name') or bundle.get('signerName') or '')}"
        return [_File(bundle.get("path", "").rstrip("/"), described)]
    certificate = source.get("podCertificate") or {}
    parts = (("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle"))
    named = [(certificate[field], shown) for field, shown in parts if certificate.get(field)]
    return [_File(path.rstrip("/"), f"PodCertificate {shown}") for path, shown in named]
