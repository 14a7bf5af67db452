"""The lease that shows that a server lives, under an identity made from its host's name; and the removal of dead ones.

The lease is renewed every ten seconds and lasts an hour. One that an earlier server of this host left behind is
replaced, for it may name an address nobody serves any more; a server that stops takes its lease away.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import uuid
from typing import Final

from pilothouse.controllers.own_objects import create, existing, remove, update
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, TimeError, now_instant, now_micro, parse_micro_time
from pilothouse.registry.store.store import Store

NAMESPACE: Final = "kube-system"
COMPONENT: Final = "kube-apiserver"
IDENTITY_LABEL: Final = "apiserver.kubernetes.io/identity"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
PEER_ADDRESS: Final = "kubernetes.io/peer-advertise-address"
DURATION_SECONDS: Final = 3600
RENEW_SECONDS: Final = 10.0
COLLECT_SECONDS: Final = 3600.0


def server_identity(hostname: str) -> str:
    """``apiserver-`` and a hash of host name and component, each with its length in front."""
    parts = (hostname.encode(), COMPONENT.encode())
    digest = hashlib.sha256(b"".join(len(part).to_bytes(2, "big") + part for part in parts)).digest()
    return "apiserver-" + base64.b32encode(digest[:16]).decode().rstrip("=").lower()


class IdentityLease:
    """The lease of this server, reachable by its peers at ``peer_address``."""

    def __init__(self, leases: Store, peer_address: str, hostname: str) -> None:
        """Without a ``peer_address`` the lease does not say one."""
        self._leases = leases
        self._hostname = hostname
        self._peer_address = peer_address
        self.name = server_identity(self._hostname)
        self._holder = f"{self.name}_{uuid.uuid4()}"
        self._stopped = False
        self._lock = asyncio.Lock()

    async def begin(self) -> None:
        """Replace what an earlier server left behind."""
        async with self._lock:
            await remove(self._leases, NAMESPACE, self.name)
            await create(self._leases, self._renewed({"metadata": {"name": self.name, "namespace": NAMESPACE}}))

    async def renew(self) -> None:
        """Show that the server lives."""
        async with self._lock:
            if self._stopped:
                return
            if not await update(self._leases, NAMESPACE, self.name, self._renewed):
                await create(self._leases, self._renewed({"metadata": {"name": self.name, "namespace": NAMESPACE}}))

    async def end(self) -> None:
        """Take the lease away for good."""
        self._stopped = True
        async with self._lock:
            await remove(self._leases, NAMESPACE, self.name)

    def _renewed(self, lease: Object) -> Object:
        metadata = lease["metadata"]
        labels = {**(metadata.get("labels") or {}), IDENTITY_LABEL: COMPONENT, HOSTNAME_LABEL: self._hostname}
        annotations = dict(metadata.get("annotations") or {})
        if self._peer_address:
            annotations[PEER_ADDRESS] = self._peer_address
        spec = {
            **lease.get("spec", {}),
            "holderIdentity": self._holder,
            "leaseDurationSeconds": DURATION_SECONDS,
            "renewTime": now_micro(),
        }
        shown = {"labels": labels, **({"annotations": annotations} if annotations else {})}
        return {**lease, "metadata": {**metadata, **shown}, "spec": spec}


def is_identity_lease(lease: Object) -> bool:
    """Whether a lease is that of an API server."""
    return (lease["metadata"].get("labels") or {}).get(IDENTITY_LABEL) == COMPONENT


async def collect_expired(leases: Store) -> None:
    """Remove the leases of servers that no longer renew them."""
    at = now_instant()
    for entry in leases.cache.entries(leases.key(NAMESPACE, "")):
        if entry.labels.get(IDENTITY_LABEL) != COMPONENT or not is_expired(leases.decode(entry), at):
            continue
        newest = await existing(leases, NAMESPACE, entry.name)
        if newest is not None and is_expired(newest, at):
            await remove(leases, NAMESPACE, entry.name, newest["metadata"]["uid"])


def is_expired(lease: Object, at: Instant) -> bool:
    """Whether a lease's time is over; one that does not say counts as expired."""
    spec = lease.get("spec") or {}
    renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    if renewed is None or seconds is None:
        return True
    try:
        since = parse_micro_time(renewed)
    except TimeError:
        return True
    return Instant(since.seconds + seconds, since.nanos) < at
