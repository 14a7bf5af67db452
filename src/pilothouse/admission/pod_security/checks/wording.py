"""Walking over a pod's containers, and the grammar of refusals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pilothouse.apis.core.pod_spec.traversal import containers_of

Metadata = dict[str, Any]
Spec = dict[str, Any]
Violation = tuple[str, str]
"""The reason, which is always shown, and the detail for a single pod."""


def containers(spec: Spec) -> Iterator[tuple[str, dict[str, Any]]]:
    """All containers of a pod, init ones first and ephemeral ones last, by name."""
    for container in containers_of(spec):
        yield container.get("name", ""), container


def contexts(spec: Spec) -> Iterator[tuple[str, dict[str, Any]]]:
    """The security contexts of all containers; empty where there is none."""
    for name, container in containers(spec):
        yield name, container.get("securityContext") or {}


def pod_context(spec: Spec) -> dict[str, Any]:
    """The pod's own security context."""
    return spec.get("securityContext") or {}


def quoted(items: Iterable[str]) -> str:
    """``"a", "b"``"""
    return ", ".join(f'"{item}"' for item in items)


def counted(word: str, items: Sequence[str] | set[str]) -> str:
    """The word, in the plural unless there is one."""
    return word if len(items) == 1 else word + "s"


def named(word: str, names: Sequence[str]) -> str:
    """``containers "a", "b"``"""
    return f"{counted(word, names)} {quoted(names)}"


def setters(pod: bool, names: Sequence[str]) -> str:
    """Who set something: the pod, some containers, or both."""
    parts = ["pod"] if pod else []
    if names:
        parts.append(named("container", names))
    return " and ".join(parts)


def is_windows(spec: Spec) -> bool:
    """Whether the pod says it runs on Windows."""
    return (spec.get("os") or {}).get("name") == "windows"


def has_user_namespace(spec: Spec) -> bool:
    """Whether root in the pod is nobody on the host."""
    return spec.get("hostUsers") is False
