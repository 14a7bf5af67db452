"""Which pods are behind a service, under which address and with which ports."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from ipaddress import ip_address
from typing import Any, Final

from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.machinery.objects import Object

HEADLESS: Final = "service.kubernetes.io/headless"
IPV4: Final = "IPv4"
IPV6: Final = "IPv6"
_WEIGHT_OF_POD: Final = 100
_WEIGHT_OF_PORT: Final = 4


def belongs(pod: Object, *, include_terminating: bool) -> bool:
    """Whether a pod that the selector matches counts: it has an address and has not ended."""
    if is_terminal(pod) or not (pod.get("status") or {}).get("podIPs"):
        return False
    return include_terminating or not pod["metadata"].get("deletionTimestamp")


def family_of(address: str) -> str:
    """IPv4 or IPv6."""
    return IPV4 if ip_address(address).version == 4 else IPV6


def address_of(pod: Object, family: str) -> str | None:
    """The pod's address of a family."""
    addresses = (each["ip"] for each in pod["status"].get("podIPs") or ())
    return next((each for each in addresses if family_of(each) == family), None)


def is_headless(service: Object) -> bool:
    """Whether the service has no address of its own."""
    return service["spec"].get("clusterIP", "") in ("", "None")


def families_of(service: Object) -> list[str]:
    """The families of addresses that the service is for."""
    families = service["spec"].get("ipFamilies")
    if families:
        return list(families)
    address = service["spec"].get("clusterIP", "")
    return [IPV4 if address in ("", "None") else family_of(address)]


def sets_hostname(pod: Object, service: Object) -> bool:
    """Whether the pod is known by its own name within the service's domain."""
    spec, metadata = pod["spec"], pod["metadata"]
    return bool(
        spec.get("hostname")
        and spec.get("subdomain") == service["metadata"]["name"]
        and metadata["namespace"] == service["metadata"]["namespace"]
    )


Numbers = tuple[int | None, ...]


class TargetPorts:
    """The numbers behind the ports of a service: given, or those of a pod's ports with that name.

    A pod's ports are gone through once, however many the service has, and not at all if it names none.
    """

    def __init__(self, service: Object) -> None:
        self.ports: list[Object] = service["spec"].get("ports") or []
        self._targets = [(port.get("targetPort", port["port"]), port.get("protocol") or "TCP") for port in self.ports]
        self._has_names = any(not isinstance(target, int) for target, _ in self._targets)

    def of(self, pod: Object) -> Numbers:
        """A number for each port of the service; None for what the pod does not have."""
        declared: dict[tuple[Any, str], int] = {}
        for each in _declared_ports(pod) if self._has_names else ():
            declared.setdefault((each.get("name"), each.get("protocol") or "TCP"), int(each["containerPort"]))
        return tuple(
            target if isinstance(target, int) else declared.get((target, protocol))
            for target, protocol in self._targets
        )


def weight_of(service: Object, pods: Sized) -> int:
    """How long it takes to find the endpoints of a service, in bytes of input that take as long."""
    return len(pods) * (_WEIGHT_OF_POD + _WEIGHT_OF_PORT * len(service["spec"].get("ports") or ()))


def _declared_ports(pod: Object) -> Iterable[dict[str, Any]]:
    spec = pod["spec"]
    sidecars = (each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always")
    for container in (*spec["containers"], *sidecars):
        yield from container.get("ports") or ()


def target_of(pod: Object) -> dict[str, Any]:
    """The reference to a pod."""
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
