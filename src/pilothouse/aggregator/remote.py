"""A group version that another server serves, as its APIService describes it."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from pilothouse.controllers.own_objects import condition_of
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.objects import Object
from pilothouse.net.dialing import EITHER, Tls

AVAILABLE = "Available"


@dataclass(frozen=True, slots=True)
class RemoteApi:
    """What the proxy needs to know of an APIService with a service."""

    name: str
    group_version: GroupVersion
    priority: tuple[int, int]
    namespace: str
    service: str
    port: int
    authorities: bytes
    insecure: bool
    is_available: bool

    @property
    def path(self) -> str:
        """Where its discovery document is."""
        group, version = self.group_version
        return f"/apis/{group}/{version}" if group else f"/api/{version}"

    def tls(self, cert_file: str, key_file: str) -> Tls:
        """How to speak to it: as the service it claims to be, showing our certificate."""
        return Tls(
            authorities=self.authorities,
            server_name=f"{self.service}.{self.namespace}.svc",
            cert_file=cert_file,
            key_file=key_file,
            insecure=self.insecure,
            protocols=EITHER,
        )


def read_remote(api_service: Object) -> RemoteApi | None:
    """The remote API of an APIService; None for one that is served here."""
    spec = api_service["spec"]
    reference = spec.get("service")
    if reference is None:
        return None
    return RemoteApi(
        name=api_service["metadata"]["name"],
        group_version=GroupVersion(spec.get("group", ""), spec.get("version", "")),
        priority=(spec.get("groupPriorityMinimum", 0), spec.get("versionPriority", 0)),
        namespace=reference["namespace"],
        service=reference["name"],
        port=reference.get("port", 443),
        authorities=base64.b64decode(spec.get("caBundle") or ""),
        insecure=bool(spec.get("insecureSkipTLSVerify")),
        is_available=(condition_of(api_service, AVAILABLE) or {}).get("status") == "True",
    )
