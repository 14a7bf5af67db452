"""The config map ``extension-apiserver-authentication``: whom aggregated servers should trust.

It holds the authority of client certificates, and authority, names and headers of front proxies. Servers of one cluster
may differ, so everybody adds what is his and removes nothing but certificates that have expired. Looked at when the
config map changes and every minute, which is also how a renewed authority file gets in.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pilothouse.controllers.own_objects import create, existing, remove, update
from pilothouse.controllers.runtime.controller import Controller, Periodic, Until
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.store.store import Store

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
INTERVAL_SECONDS: Final = 60.0
CLIENT_CA: Final = "client-ca-file"
PROXY_CA: Final = "requestheader-client-ca-file"
ALLOWED_NAMES: Final = "requestheader-allowed-names"
USERNAME_HEADERS: Final = "requestheader-username-headers"
UID_HEADERS: Final = "requestheader-uid-headers"
GROUP_HEADERS: Final = "requestheader-group-headers"
EXTRA_PREFIXES: Final = "requestheader-extra-headers-prefix"
_LISTS: Final = (ALLOWED_NAMES, EXTRA_PREFIXES, GROUP_HEADERS, UID_HEADERS, USERNAME_HEADERS)
# An authority is kept a little beyond its end, for clocks that differ.
_SLACK_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Trust:
    """What this server's flags say: two files of authorities (empty for none), and the lists by their keys."""

    client_ca_file: str
    proxy_ca_file: str
    lists: dict[str, tuple[str, ...]]

    def read(self) -> dict[str, str]:
        """The authorities as they are on disk now. A file that cannot be read says nothing."""
        paths = {CLIENT_CA: self.client_ca_file, PROXY_CA: self.proxy_ca_file}
        found = {}
        for key, path in paths.items():
            if path:
                with suppress(OSError, UnicodeDecodeError):
                    found[key] = Path(path).read_text()
        return found


class AuthenticationTrust:
    """Keeps the config map, from the time that ``ready`` is set: reading certificates takes a while at first."""

    def __init__(
        self,
        config_maps: Store,
        informers: InformerFactory,
        trust: Trust,
        ready: asyncio.Event,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = config_maps
        self._trust = trust
        self._clock = clock
        self.controller: Controller[str] = Controller(
            "cluster authentication trust", self.reconcile, wait_for=[Until(ready)]
        )
        self._periodic = Periodic("look at cluster authentication trust", self._ask, INTERVAL_SECONDS, wait_for=ready)
        self._informer = informers.of("", "v1", "configmaps", NAMESPACE, NAME)
        self._informer.add_handler(self._changed, lambda old, new: self._changed(new), self._changed, name="trust")

    async def start(self, supervisor: Supervisor) -> None:
        """Put the config map right once ready, after every change and every minute."""
        await self._informer.wait_synced()
        self.controller.start(supervisor)
        self._periodic.start(supervisor)

    def _changed(self, config_map: Object) -> None:
        self.controller.queue.add(NAME)

    async def _ask(self) -> None:
        self.controller.queue.add(NAME)

    async def reconcile(self, key: str) -> None:
        """Add what is missing. Data that has grown too long is thrown away, for all to write theirs again."""
        stored = await existing(self._store, NAMESPACE, NAME)
        known = (stored or {}).get("data") or {}
        data = await asyncio.to_thread(self._combined, known)
        if data == known:
            return
        if stored is None:
            await create(self._store, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data})
            return
        try:
            await update(self._store, NAMESPACE, NAME, lambda obj: {**obj, "data": data})
        except errors.StatusError as error:
            if error.code == 413 or (error.code == 422 and "Too long" in str(error)):
                await remove(self._store, NAMESPACE, NAME)
            raise

    def _combined(self, known: dict[str, str]) -> dict[str, str]:
        return combine(known, self._trust.read(), self._trust.lists, self._clock())


def combine(
    known: dict[str, str], authorities: dict[str, str], lists: dict[str, tuple[str, ...]], at: float
) -> dict[str, str]:
    """The data that holds both what is known and what a server's flags say."""
    data = {}
    for key in (CLIENT_CA, PROXY_CA):
        bundle = combine_bundles(known.get(key, ""), authorities.get(key, ""), at)
        if bundle:
            data[key] = bundle
    if PROXY_CA in data:
        for key in _LISTS:
            values = list(dict.fromkeys([*_read_list(known.get(key, "")), *lists.get(key, ())]))
            if values or key != UID_HEADERS:
                data[key] = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    return dict(sorted(data.items()))


def _read_list(text: str) -> Sequence[str]:
    values = json.loads(text) if text else []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"not a list of strings: {text}")
    return values


def combine_bundles(known: str, own: str, at: float) -> str:
    """All certificates of both texts in PEM, each once, without those that expired some time ago."""
    if not known and not own:
        return ""
    from cryptography import x509  # slow to load, and many servers have no authorities
    from cryptography.hazmat.primitives.serialization import Encoding

    certificates = [
        certificate for text in (known, own) if text for certificate in x509.load_pem_x509_certificates(text.encode())
    ]
    lasting = [each for each in certificates if each.not_valid_after_utc.timestamp() > at - _SLACK_SECONDS]
    return "".join(dict.fromkeys(each.public_bytes(Encoding.PEM).decode() for each in lasting))
