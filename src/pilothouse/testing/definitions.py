"""Custom resource definitions for tests: created, and waited for until clients can use what they define.

A definition is accepted long before its resources are served. Clients of kube-apiserver wait for the condition
``Established`` and then for discovery, because other parts of the server follow the definition at their own pace; so
does ``establish``. How fast the machine is makes no difference to who waits like this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pilothouse.machinery.objects import Object

__all__ = ["DEFINITIONS", "Ask", "await_condition", "await_served", "establish"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE_SECONDS = 120.0
"""How long a condition is waited for: a test that needs this much has failed, however busy the machine."""
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PAUSE_SECONDS = 0.01

T = TypeVar("T")
Ask = Callable[[str, str, Any, Mapping[str, str] | None], tuple[int, Any]]
"""Method, path, body and headers of a request; status and decoded body of its answer."""


def establish(ask: Ask, definition: Object) -> Object:
    """Create a definition and wait until every version of it is served; the definition as it was created."""
    whole = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition}
    status, created = ask("POST", DEFINITIONS, whole, None)
    assert status == 201, created
    await_served(ask, definition)
    answered: Object = created
    return answered


def await_served(ask: Ask, definition: Object) -> None:
    """Wait until the definition of this name is established, and its served versions are discovered and answer."""
    spec = definition["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    await_condition(lambda: ask("GET", path, None, None), _is_established)
    for version in spec["versions"]:
        if version["served"]:
            _await_version(ask, f"/apis/{group}/{version['name']}", plural)
    await_condition(lambda: ask("GET", "/apis", None, {"Accept": _AGGREGATED}), lambda answer: _has(answer, spec))


def _await_version(ask: Ask, path: str, plural: str) -> None:
    await_condition(lambda: ask("GET", path, None, None), lambda answer: _lists(answer, plural))
    await_condition(lambda: ask("GET", f"{path}/{plural}?limit=1", None, None), lambda answer: answer[0] == 200)


def await_condition(read: Callable[[], T], is_met: Callable[[T], bool]) -> T:
    """Read until the condition is met; what was read then."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_met(found := read()):
        assert time.monotonic() < deadline, found
        time.sleep(_PAUSE_SECONDS)
    return found


def _is_established(answer: tuple[int, Any]) -> bool:
    status, definition = answer
    conditions = definition.get("status", {}).get("conditions") or () if status == 200 else ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _lists(answer: tuple[int, Any], plural: str) -> bool:
    status, found = answer
    return status == 200 and any(each["name"] == plural for each in found["resources"])


def _has(answer: tuple[int, Any], spec: Object) -> bool:
    """Whether aggregated discovery has every served version of the resource, and no other version of it."""
    status, found = answer
    groups = [each for each in found["items"] if each["metadata"]["name"] == spec["group"]] if status == 200 else []
    shown = {
        version["version"]
        for group in groups
        for version in group["versions"]
        if any(each["resource"] == spec["names"]["plural"] for each in version["resources"])
    }
    return shown == {version["name"] for version in spec["versions"] if version["served"]}
