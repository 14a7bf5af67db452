"""Users with just the rights a test gives them, each with a kubeconfig; service accounts also with a token.

Rights are the rules of RBAC, cluster-wide or in one namespace. What was made for them is deleted at the end.
"""

from __future__ import annotations

import ssl
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pilothouse.credentials.issuing import issue_client
from pilothouse.credentials.kubeconfig import kubeconfig, store_kubeconfig
from pilothouse.machinery.objects import Object
from pilothouse.testing.calling import Caller
from pilothouse.testing.client import AsyncClient, Client, Refused
from pilothouse.testing.in_process import InProcessServer

_RBAC = "rbac.authorization.k8s.io/v1"
_LIFE_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class Person:
    """Somebody who may use the server; ``token`` is empty where a certificate is shown instead."""

    name: str
    kubeconfig: Path
    token: str
    client: Client

    @property
    def async_client(self) -> AsyncClient:
        """The client for coroutines."""
        return AsyncClient(self.client)


class Users:
    """Makes users of one server, until closed."""

    def __init__(self, server: InProcessServer, namespace: str = "default") -> None:
        self._server = server
        self._namespace = namespace
        self._admin = Client(server.caller())
        self._folder = tempfile.TemporaryDirectory(prefix="pilothouse-users-")
        self._made: list[tuple[str, str, str]] = []
        self._count = 0

    def user(
        self,
        name: str,
        *,
        groups: Sequence[str] = (),
        rules: Sequence[Object] = (),
        role: str = "",
        namespace: str | None = None,
    ) -> Person:
        """A user by certificate. ``rules`` and the cluster role ``role`` hold in ``namespace``, or everywhere."""
        self._grant({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}, rules, role, namespace)
        pair = issue_client(self._server.pki, name, groups, _LIFE_SECONDS, time.time())
        path = self._store(kubeconfig(self._server.url, self._server.pki.ca_cert.read_bytes(), name, pair=pair))
        context = self._trusting()
        cert, key = path.with_suffix(".crt"), path.with_suffix(".key")
        cert.write_bytes(pair[0])
        key.write_bytes(pair[1])
        context.load_cert_chain(cert, key)
        return Person(name, path, "", Client(Caller(self._server.url, context), self._namespace))

    def service_account(
        self,
        name: str,
        *,
        rules: Sequence[Object] = (),
        role: str = "",
        namespace: str | None = None,
    ) -> Person:
        """A service account of the test's namespace with a token. Rights as above."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        self._create(account, self._namespace)
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self._namespace}
        self._grant(subject, rules, role, namespace)
        path = f"{self._admin.path('v1/ServiceAccount', self._namespace)}/{name}/token"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = self._admin.request("POST", path, review)["status"]["token"]
        text = kubeconfig(self._server.url, self._server.pki.ca_cert.read_bytes(), name, token=token)
        client = Client(Caller(self._server.url, self._trusting(), token), self._namespace)
        return Person(f"system:serviceaccount:{self._namespace}:{name}", self._store(text), token, client)

    def close(self) -> None:
        """Take back rights and accounts."""
        with self._folder:
            for kind, name, namespace in reversed(self._made):
                try:
                    self._admin.delete(kind, name, namespace)
                except Refused as refusal:
                    if refusal.code != 404:
                        raise

    def _grant(self, subject: Object, rules: Sequence[Object], role: str, namespace: str | None) -> None:
        self._count += 1
        scope = "" if namespace is None else namespace
        kinds = ("Role", "RoleBinding") if scope else ("ClusterRole", "ClusterRoleBinding")
        name = f"test-{subject['name'].replace(':', '-').lower()}-{self._count}"
        if rules:
            made = {"apiVersion": _RBAC, "kind": kinds[0], "metadata": {"name": name}, "rules": list(rules)}
            self._create(made, scope)
            self._bind(kinds[1], name, {"kind": kinds[0], "name": name}, subject, scope)
        if role:
            self._bind(kinds[1], f"{name}-role", {"kind": "ClusterRole", "name": role}, subject, scope)

    def _bind(self, kind: str, name: str, role: Object, subject: Object, namespace: str) -> None:
        role_ref = {"apiGroup": "rbac.authorization.k8s.io", **role}
        binding = {"apiVersion": _RBAC, "kind": kind, "metadata": {"name": name}}
        self._create({**binding, "roleRef": role_ref, "subjects": [subject]}, namespace)

    def _create(self, obj: Object, namespace: str) -> None:
        self._admin.create(obj, namespace)
        self._made.append((f"{obj['apiVersion']}/{obj['kind']}", obj["metadata"]["name"], namespace))

    def _store(self, text: str) -> Path:
        path = Path(self._folder.name) / f"{len(list(Path(self._folder.name).iterdir()))}.kubeconfig"
        store_kubeconfig(path, text)
        return path

    def _trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self._server.pki.ca_cert))
