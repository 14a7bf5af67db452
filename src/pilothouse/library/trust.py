"""Whom the main API server says to trust: its config map ``extension-apiserver-authentication``, kept in files.

Certificates are re-read from files like those that flags name, so what the config map holds is written to files, too.
A server that starts while the main one is away goes by those of the last time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson

from pilothouse.authn.union import FrontProxy
from pilothouse.credentials.pki import write_atomically
from pilothouse.credentials.private_folder import make_private_folder
from pilothouse.library.main_server import Main
from pilothouse.library.options import DelegatedAuthenticationOptions

_PATH: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_CLIENTS: Final = "client-ca-file"
_PROXIES: Final = "requestheader-client-ca-file"


class Trust:
    """The content of the config map, and the files it is kept in."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._data = folder, _read(folder / "trust.json")

    async def fetch(self, main: Main) -> bool:
        """Look at the config map; whether anything changed. Raises ``StatusError`` and ``OSError``."""
        data = {key: str(value) for key, value in ((await main.get(_PATH)).get("data") or {}).items()}
        if data == self._data:
            return False
        await asyncio.to_thread(self._write, data)
        self._data = data
        return True

    def _write(self, data: Mapping[str, str]) -> None:
        make_private_folder(self._folder)
        for key in (_CLIENTS, _PROXIES):
            path = self._folder / f"{key}.crt"
            if data.get(key):
                write_atomically(path, data[key].encode(), 0o600)
            else:
                path.unlink(missing_ok=True)
        write_atomically(self._folder / "trust.json", orjson.dumps(data), 0o600)

    def client_ca_file(self, flags: DelegatedAuthenticationOptions) -> str:
        """The authorities of clients: those of the flag, or the main API server's."""
        return flags.client_ca_file or self._file(_CLIENTS)

    def front_proxy(self, flags: DelegatedAuthenticationOptions) -> FrontProxy | None:
        """Who may name users in headers, and in which."""
        if flags.requestheader_client_ca_file:
            return FrontProxy(
                flags.requestheader_client_ca_file,
                flags.requestheader_allowed_names,
                flags.requestheader_username_headers,
                flags.requestheader_uid_headers,
                flags.requestheader_group_headers,
                flags.requestheader_extra_headers_prefix,
            )
        if not self._file(_PROXIES):
            return None
        return FrontProxy(
            self._file(_PROXIES),
            self._listed("allowed-names"),
            self._listed("username-headers"),
            self._listed("uid-headers"),
            self._listed("group-headers"),
            self._listed("extra-headers-prefix"),
        )

    def _file(self, key: str) -> str:
        return str(self._folder / f"{key}.crt") if self._data.get(key) else ""

    def _listed(self, name: str) -> Sequence[str]:
        text = self._data.get(f"requestheader-{name}") or "[]"
        try:
            return [str(each) for each in orjson.loads(text)]
        except (orjson.JSONDecodeError, TypeError):
            return ()


def _read(path: Path) -> dict[str, str]:
    try:
        return dict(orjson.loads(path.read_bytes()))
    except (OSError, ValueError):
        return {}
