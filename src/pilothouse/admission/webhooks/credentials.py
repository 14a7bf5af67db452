"""What we show to webhooks: users of a kubeconfig, named after the servers they are for.

``name:port``, ``*.suffix:port``, the same without the port 443, then ``*``, then the current context's user.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pilothouse.admission.configuration import ConfigurationError, decoded, require_kind
from pilothouse.machinery import field_errors, yaml_codec
from pilothouse.machinery.shapes import Struct

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory


@dataclass(frozen=True, slots=True)
class Credentials:
    """Headers and certificate for one server."""

    headers: dict[str, str] = field(default_factory=dict)
    cert_file: str = ""
    key_file: str = ""


_NONE = Credentials()
_KUBECONFIG: Final = field_errors.Path("kubeConfigFile")
_FIELDS: Final = ("apiVersion", "kind", "kubeConfigFile", "staticManifestsDir")
_SHAPE: Final = Struct("WebhookAdmissionConfiguration", dict.fromkeys(_FIELDS, str))


class CredentialBook:
    """The users of a kubeconfig; empty without one."""

    def __init__(self, kubeconfig: str = "") -> None:
        self._users: dict[str, Credentials] = {}
        self._default = _NONE
        self._secrets = _Secrets()
        if kubeconfig:
            self._load(Path(kubeconfig))

    @classmethod
    def configured(cls, raw: Any) -> CredentialBook:
        """From a plug-in's section of the admission configuration."""
        if raw is None:
            return cls()
        if isinstance(raw, dict) and raw.get("kind") == "WebhookAdmission":
            require_kind(raw, "apiserver.config.k8s.io", ("v1alpha1",), "WebhookAdmission")
        else:
            require_kind(raw, "apiserver.config.k8s.io", ("v1",), "WebhookAdmissionConfiguration")
        kubeconfig = decoded(raw, _SHAPE, strict=False).get("kubeConfigFile") or ""
        if kubeconfig and not kubeconfig.startswith("/"):
            raise ConfigurationError(
                str(field_errors.invalid(_KUBECONFIG, kubeconfig, "must be an absolute file path"))
            )
        return cls(kubeconfig)

    def find(self, target: str) -> Credentials:
        """The credentials for ``host:port``."""
        for name in _candidates(target):
            if name in self._users:
                return self._users[name]
        return self._users.get("*", self._default)

    def close(self) -> None:
        """Remove the files made for it."""
        self._secrets.remove()

    def _load(self, path: Path) -> None:
        try:
            config = yaml_codec.load(path.read_bytes()) or {}
        except OSError as error:
            raise ConfigurationError(f"stat {path}: {error.strerror}") from None
        except ValueError as error:
            raise ConfigurationError(f'error loading config file "{path}": {error}') from None
        for item in config.get("users") or ():
            self._users[item.get("name", "")] = _read_user(item.get("user") or {}, path.parent, self._secrets)
        current = config.get("current-context") or ""
        contexts = {item.get("name"): item.get("context") or {} for item in config.get("contexts") or ()}
        user = contexts.get(current, {}).get("user") or ""
        self._default = self._users.get(user, _NONE)


def _candidates(target: str) -> Iterator[str]:
    yield from _with_wildcards(target)
    host, _, port = target.rpartition(":")
    if port == "443":
        yield from _with_wildcards(host)


def _with_wildcards(target: str) -> Iterator[str]:
    yield target
    steps = target.split(".")
    for position in range(1, len(steps)):
        yield "*." + ".".join(steps[position:])


class _Secrets:
    """Files of certificates that were given in place; TLS libraries take only files."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._count = 0

    def write(self, data: bytes) -> str:
        if self._folder is None:
            from tempfile import TemporaryDirectory  # few webhooks are shown a certificate

            self._folder = TemporaryDirectory(prefix="pilothouse-")
        self._count += 1
        path = Path(self._folder.name) / f"{self._count}.pem"
        path.write_bytes(data)
        return str(path)

    def remove(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def _read_user(user: dict[str, Any], folder: Path, secrets: _Secrets) -> Credentials:
    headers = {}
    token = user.get("token") or ""
    if not token and user.get("tokenFile"):
        token = (folder / user["tokenFile"]).read_text().strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    elif user.get("username") or user.get("password"):
        pair = f"{user.get('username', '')}:{user.get('password', '')}".encode()
        headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
    cert = _file(user, "client-certificate", folder, secrets)
    return Credentials(headers, cert, _file(user, "client-key", folder, secrets) if cert else "")


def _file(user: dict[str, Any], name: str, folder: Path, secrets: _Secrets) -> str:
    if user.get(name):
        return str(folder / user[name])
    data = user.get(f"{name}-data")
    return secrets.write(base64.b64decode(data)) if data else ""
