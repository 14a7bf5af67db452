"""What a pod asks of a node: resources as integers, and ports on the host.

CPU counts in thousandths, everything else in whole units, rounded up, as kube-scheduler counts. A pod needs the
larger of

    what its containers need together with its sidecars
    what any of its init containers needs while those sidecars that began before it run beside it

and its overhead on top. Resources given for the pod as a whole take the place of that sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
_UNSAID_CPU: Final = 100
_UNSAID_MEMORY: Final = 200 * 1024 * 1024
_POD_LEVEL: Final = (CPU, MEMORY)

Amounts = dict[str, int]
HostPort = tuple[str, str, int]
_EVERYWHERE: Final = "0.0.0.0"


@lru_cache(maxsize=4096)
def _amount(name: str, text: str) -> int:
    parsed = quantity.parse(text)
    return parsed.milli_value() if name == CPU else parsed.value()


def amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """A resource list as integers."""
    return {name: _amount(name, str(text)) for name, text in (resources or {}).items()}


def pod_requests(pod: Object) -> Amounts:
    """All that the pod needs of its node."""
    spec = pod["spec"]
    total = _containers_and_init(spec, _requests)
    total |= {
        name: amount
        for name, amount in amounts((spec.get("resources") or {}).get("requests")).items()
        if name in _POD_LEVEL or name.startswith("hugepages-")
    }
    _add(total, amounts(spec.get("overhead")))
    return total


def assumed_requests(pod: Object) -> tuple[int, int]:
    """CPU and memory for scoring: a container that asks for nothing is taken to need a little all the same."""
    needed = _containers_and_init(pod["spec"], _assumed)
    needed |= {
        name: amount
        for name, amount in amounts((pod["spec"].get("resources") or {}).get("requests")).items()
        if name in _POD_LEVEL
    }
    _add(needed, amounts(pod["spec"].get("overhead")))
    return needed.get(CPU, 0), needed.get(MEMORY, 0)


def host_ports(pod: Object) -> frozenset[HostPort]:
    """The ports on the node's own addresses, as address, protocol and number."""
    spec = pod["spec"]
    sidecars = [each for each in spec.get("initContainers") or () if _is_sidecar(each)]
    return frozenset(
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in (*spec["containers"], *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )


def _containers_and_init(spec: Object, read: Any) -> Amounts:
    total: Amounts = {}
    for container in spec["containers"]:
        _add(total, read(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        needed = read(container)
        if _is_sidecar(container):
            _add(total, needed)
            _add(sidecars, needed)
            needed = sidecars
        else:
            needed = dict(needed)
            _add(needed, sidecars)
        _raise_to(peak, needed)
    _raise_to(total, peak)
    return total


def _requests(container: Object) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _assumed(container: Object) -> Amounts:
    requests = _requests(container)
    return {CPU: requests.get(CPU, _UNSAID_CPU), MEMORY: requests.get(MEMORY, _UNSAID_MEMORY)}


def _is_sidecar(container: Object) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount


def clash(wanted: Iterable[HostPort], taken: Collection[HostPort]) -> bool:
    """Whether any wanted port is taken; 0.0.0.0 is every address. Pods may want ten thousand each."""
    if not taken:
        return False
    anywhere = {(protocol, number) for _, protocol, number in taken}
    return any(
        (protocol, number) in anywhere
        and (address == _EVERYWHERE or (address, protocol, number) in taken or (_EVERYWHERE, protocol, number) in taken)
        for address, protocol, number in wanted
    )
