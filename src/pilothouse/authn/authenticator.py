"""The contract of authentication, and the order in which the ways of authenticating are tried.

An authenticator answers with an identity, with None for "no opinion", or raises ``InvalidCredentials``. The union
asks each in turn and takes the first identity; a refusal counts only when nobody else vouches for the request. An
identity gets the group ``system:authenticated``, and the credentials are taken off the request, so that nothing
behind this point can misuse or forward them. Only a request that offered nothing at all becomes anonymous: a wrong
token is a 401 everywhere, even where anonymous is welcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, User
from pilothouse.net.messages import Request

_STANDARD_PROXY_HEADERS = (b"x-remote-user", b"x-remote-uid", b"x-remote-group")
_STANDARD_EXTRA_PREFIXES = (b"x-remote-extra-",)
EXTRA_SPACE_WARNING: Final = (
    "the provided Authorization header contains extra space before the bearer token, and is ignored"
)


class InvalidCredentials(Exception):
    """Credentials were offered and are wrong. The text is for the log: it never holds the credentials themselves."""

    def __init__(self, *messages: str, annotations: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(*messages)
        self.messages, self.annotations = messages, annotations

    def __str__(self) -> str:
        return aggregate(self.messages)


@dataclass(frozen=True, slots=True)
class Authenticated:
    """An identity, the audiences it holds for, and what to tell the client in Warning headers."""

    user: User
    audiences: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # Annotations for the audit event of the request, in the order they were made.
    annotations: tuple[tuple[str, str], ...] = ()


class Authenticator(Protocol):
    """Authenticates a request by its headers or its connection."""

    async def authenticate(self, request: Request) -> Authenticated | None:
        """The identity behind the request, None for no opinion; raises InvalidCredentials."""
        ...


class TokenAuthenticator(Protocol):
    """Authenticates a bearer token for the given audiences; no audiences means "do not check them"."""

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The identity that the token proves, None for no opinion; raises InvalidCredentials."""
        ...


Recall = Callable[[Request], Authenticated | None]
"""Who asks, as far as that is known already and still holds. Asks nobody, and refuses nobody."""


class Union:
    """Tries authenticators in order, then anonymous, and cleans the request."""

    def __init__(
        self,
        authenticators: Sequence[Authenticator],
        anonymous: Authenticator | None = None,
        *,
        recall: Recall | None = None,
        recall_named: Recall | None = None,
        proxy_headers: Iterable[str] = (),
        proxy_extra_prefixes: Iterable[str] = (),
    ) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous
        # Knows a connection's token already. Asked first where there is no certificate: then nothing comes before it.
        self._recall = recall
        # Knows whom a front proxy names already. Where there is a certificate, nothing comes before that.
        self._recall_named = recall_named
        self._headers = frozenset(_lower(_STANDARD_PROXY_HEADERS, proxy_headers))
        self._prefixes = _lower(_STANDARD_EXTRA_PREFIXES, proxy_extra_prefixes)

    async def authenticate(self, request: Request) -> Authenticated | None:
        """The first identity found; raises InvalidCredentials when there are only refusals."""
        found = self.recall(request)
        if found is not None:
            return found
        found = await self._ask_all(request)
        if found is None and self._anonymous is not None:
            found = await self._anonymous.authenticate(request)
        return None if found is None else self._clean(request, found)

    def recall(self, request: Request) -> Authenticated | None:
        """The same without a coroutine, where an earlier request of the connection has shown it; None elsewhere."""
        recall = self._recall if request.connection.peer_certificate is None else self._recall_named
        found = None if recall is None else recall(request)
        return None if found is None else self._clean(request, add_authenticated_group(found))

    def _clean(self, request: Request, found: Authenticated) -> Authenticated:
        """Take credentials off the request, and whatever a front proxy might have said."""
        headers, findings = request.headers, request.block.findings
        authorization = headers.pop(b"authorization", None)
        if authorization is not None and b"  " in authorization and has_extra_space(authorization):
            found = replace(found, warnings=(*found.warnings, EXTRA_SPACE_WARNING))
        names: tuple[bytes, ...] | None = findings.get(self)
        if names is None:
            named, prefixes = self._headers, self._prefixes
            names = tuple(name for name in request.block.values if name in named or name.startswith(prefixes))
            findings[self] = names
        for name in names:
            headers.pop(name, None)
        return found

    async def _ask_all(self, request: Request) -> Authenticated | None:
        refusals: list[InvalidCredentials] = []
        for authenticator in self._authenticators:
            try:
                found = await authenticator.authenticate(request)
            except InvalidCredentials as refusal:
                refusals.append(refusal.with_traceback(None))  # else it holds this frame, which holds it
                continue
            if found is not None:
                return add_authenticated_group(found)
        if refusals:
            raise _join(refusals)
        return None


def _lower(standard: tuple[bytes, ...], more: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys((*standard, *(name.strip().lower().encode() for name in more))))


class TokenUnion:
    """Tries token authenticators in order; refusals count only if none accepts, or end the search if told so."""

    def __init__(self, authenticators: Sequence[TokenAuthenticator], *, fail_on_error: bool = False) -> None:
        self._authenticators = tuple(authenticators)
        self._fail_on_error = fail_on_error

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The first identity found; raises InvalidCredentials when there are only refusals."""
        refusals: list[InvalidCredentials] = []
        for authenticator in self._authenticators:
            try:
                found = await authenticator.authenticate_token(token, audiences)
            except InvalidCredentials as refusal:
                if self._fail_on_error:
                    raise
                refusals.append(refusal.with_traceback(None))
                continue
            if found is not None:
                return found
        if refusals:
            raise _join(refusals)
        return None


def _join(refusals: Sequence[InvalidCredentials]) -> InvalidCredentials:
    return InvalidCredentials(
        *(message for refusal in refusals for message in refusal.messages),
        annotations=tuple(note for refusal in refusals for note in refusal.annotations),
    )


class AudienceAgnostic:
    """Lets a token authenticator that knows nothing of audiences vouch for the API server's own ones only."""

    def __init__(self, api_audiences: Sequence[str], inner: TokenAuthenticator) -> None:
        self._api_audiences = frozenset(api_audiences)
        self._inner = inner

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """As the inner authenticator, with the audiences that were both asked for and served here."""
        if not audiences:
            return await self._inner.authenticate_token(token, audiences)
        common = tuple(audience for audience in audiences if audience in self._api_audiences)
        if not common:
            return None
        found = await self._inner.authenticate_token(token, audiences)
        if found is None:
            return None
        return Authenticated(found.user, common, found.warnings, found.annotations)


def has_extra_space(authorization: bytes) -> bool:
    """Whether a second space before the bearer token made it count as none, which the client is warned about."""
    if b"  " not in authorization:
        return False
    words = authorization.strip().split(b" ", 2)
    return len(words) == 3 and words[0].lower() == b"bearer" and not words[1]


_GROUPED: dict[int, tuple[Authenticated, Authenticated]] = {}
_GROUPED_LIMIT = 4096


def add_authenticated_group(found: Authenticated) -> Authenticated:
    """Put the identity into ``system:authenticated``, unless it is anonymous or already in one of the two groups.

    Cached identities come back as the same object on every request, so the grouped twin is kept by identity.
    """
    known = _GROUPED.get(id(found))
    if known is not None and known[0] is found:
        return known[1]
    user = found.user
    if user.name == ANONYMOUS or ALL_AUTHENTICATED in user.groups or ALL_UNAUTHENTICATED in user.groups:
        return found
    grouped = Authenticated(
        user.with_groups((*user.groups, ALL_AUTHENTICATED)), found.audiences, found.warnings, found.annotations
    )
    if len(_GROUPED) >= _GROUPED_LIMIT:
        _GROUPED.clear()
    _GROUPED[id(found)] = (found, grouped)
    return grouped
