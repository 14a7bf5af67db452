"""Failures of etcd: told apart by their code, worded as kube-apiserver's clients see them.

etcd's own refusals ("etcdserver: request timed out") are shown bare; what the transport says gets the frame that Go's
gRPC puts around it. Which code means that nothing was written is decided here and nowhere else.
"""

from __future__ import annotations

from typing import Final

from pilothouse.net.unary_calls import go_name
from pilothouse.storage.backends.contract import StorageError, TooLarge, Unavailable

COMPACTED: Final = "etcdserver: mvcc: required revision has been compacted"
FUTURE: Final = "etcdserver: mvcc: required revision is a future revision"
LEASE_NOT_FOUND: Final = "etcdserver: requested lease not found"
_TOO_LARGE: Final = "etcdserver: request is too large"
_REFUSED: Final = ("etcdserver: mvcc: database space exceeded", "etcdserver: too many requests")
_ELSEWHERE: Final = (
    "etcdserver: no leader",
    "etcdserver: not capable",
    "etcdserver: server stopped",
    "etcdserver: rpc not supported for learner",
)


class CallFailed(Exception):
    """A call to one member brought no answer."""

    def __init__(self, code: str, details: str, *, sent: bool = True) -> None:
        """``code`` is gRPC's name of it, in capitals; ``sent`` is False where no member can have seen the call."""
        self.code, self.details, self.sent = code, details, sent
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """As Go's client words it."""
        if self.code == "DEADLINE_EXCEEDED" and not self.details.startswith("etcdserver:"):
            return "context deadline exceeded"
        if self.details.startswith("etcdserver:"):
            return self.details
        return f"rpc error: code = {go_name(self.code)} desc = {self.details}"

    @property
    def may_be_elsewhere(self) -> bool:
        """Whether another member may well have an answer."""
        return self.code == "UNAVAILABLE" or self.details in _ELSEWHERE

    @property
    def leaves_doubt(self) -> bool:
        """Whether a write may have been carried out, or may still be."""
        if not self.sent or self.details in _REFUSED or self.details == _TOO_LARGE:
            return False
        return self.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNKNOWN")

    def to_storage_error(self) -> StorageError:
        """What the contract calls it."""
        if self.details == _TOO_LARGE:
            return TooLarge(self.message)
        if self.code == "RESOURCE_EXHAUSTED" and self.details not in _REFUSED:
            return TooLarge(self.message)
        return Unavailable(self.message)
