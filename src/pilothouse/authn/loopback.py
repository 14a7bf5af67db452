"""Requests that the server makes to itself, without a socket.

Who asks is said by the connection: code of this process makes a ``LoopbackConnection`` for an identity, and nothing
that arrives on a socket ever has one, so that no header, token or certificate of a client can claim to be it.
Everything behind authentication treats such a request as any other.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.authn.authenticator import Authenticated, add_authenticated_group
from pilothouse.machinery.user import SYSTEM_MASTERS, User, service_account_groups, service_account_name
from pilothouse.net.messages import Connection, Request

API_SERVER: Final = User("system:apiserver", groups=(SYSTEM_MASTERS,))
"""The server itself, which may do anything."""
CONTROLLER_MANAGER: Final = User("system:kube-controller-manager")
SCHEDULER: Final = User("system:kube-scheduler")
_PEER: Final = ("::1", 0)


def controller_user(name: str, namespace: str = "kube-system") -> User:
    """The service account a controller works as, such as ``replicaset-controller``."""
    return User(service_account_name(namespace, name), groups=service_account_groups(namespace))


class LoopbackConnection(Connection):
    """Stands where a client's connection would, and vouches for an identity."""

    __slots__ = ("identity",)

    def __init__(self, user: User) -> None:
        super().__init__(asyncio.Transport({"peername": _PEER}))
        self.identity = add_authenticated_group(Authenticated(user))


def own_identity(request: Request) -> Authenticated | None:
    """Who this process itself asks as; None for whatever came over a socket."""
    connection = request.connection
    return connection.identity if connection.__class__ is LoopbackConnection else None
