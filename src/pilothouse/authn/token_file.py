"""Static tokens from a CSV file: ``token,user,uid,"group1,group2"``.

The tokens are looked up by a keyed digest, so that the time of a lookup says nothing about how close a guess was.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from pilothouse.authn.authenticator import Authenticated
from pilothouse.authn.csv_records import read_records
from pilothouse.machinery.user import User
from pilothouse.machinery.watched_file import WatchedFile

_NONE = "token file '{}' must have at least 3 columns (token, user name, user uid), found {}"


def parse_token_file(content: bytes, path: str, warn: Callable[[str], object] = lambda text: None) -> dict[str, User]:
    """Users by their token. Raises ``ValueError`` with the text that kube-apiserver stops with."""
    users: dict[str, User] = {}
    for number, record in enumerate(read_records(content), 1):
        if len(record) < 3:
            raise ValueError(_NONE.format(path, len(record)))
        token, name, uid = record[:3]
        if not token:
            warn(f"empty token has been found in token file '{path}', record number '{number}'")
            continue
        if token in users:
            warn(f"duplicate token has been found in token file '{path}', record number '{number}'")
        groups = tuple(record[3].split(",")) if len(record) >= 4 else ()
        users[token] = User(name, uid, groups)
    return users


class TokenFile:
    """Authenticates by the tokens of a file; ``file.poll()`` re-reads it."""

    def __init__(self, path: str, warn: Callable[[str], object] = lambda text: None) -> None:
        self._secret = os.urandom(32)
        self.file = WatchedFile(path, lambda content: self._digest_all(parse_token_file(content, path, warn)))

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The user of the token, None for an unknown one."""
        return self.file.value.get(self._digest(token))

    def _digest_all(self, users: dict[str, User]) -> dict[bytes, Authenticated]:
        return {self._digest(token): Authenticated(user) for token, user in users.items()}

    def _digest(self, token: str) -> bytes:
        return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=32).digest()
