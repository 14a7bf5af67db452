"""The certificate that this server shows to aggregated servers, looked at now and then.

Connections that were made with an old one are not used again once a new one is there. A new one that cannot be read is
logged, and the old one stays.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.machinery.supervision import Supervisor

INTERVAL_SECONDS: Final = 60.0


class ProxyCertificate:
    """Calls ``renewed`` when the files have changed and can be used."""

    def __init__(self, cert_file: str, key_file: str, renewed: Callable[[], object]) -> None:
        self._files, self._renewed = (cert_file, key_file), renewed
        self._known: tuple[bytes, bytes] | None = None
        self._periodic = Periodic("look at the proxy client certificate", self.look, INTERVAL_SECONDS, at_once=False)

    async def start(self, supervisor: Supervisor) -> None:
        """Read the files once, which must succeed, then go on to look at them."""
        if all(self._files):
            self._known = await asyncio.to_thread(_load, *self._files)
            self._periodic.start(supervisor)

    async def look(self) -> None:
        """Whether they have changed. Raises OSError and ValueError for files that cannot be used."""
        found = await asyncio.to_thread(_load, *self._files)
        if found != self._known:
            self._known = found
            self._renewed()


def _load(cert_file: str, key_file: str) -> tuple[bytes, bytes]:
    with (
        open(cert_file, "rb") as cert,
        open(key_file, "rb") as key,
    ):  # says which is missing, as loading the pair does not
        found = cert.read(), key.read()
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert_file, key_file)
    except ssl.SSLError as error:
        raise ValueError(
            f"--proxy-client-cert-file {cert_file} and --proxy-client-key-file {key_file} are no certificate and its "
            f"key: {error.reason or error}"
        ) from None
    return found
