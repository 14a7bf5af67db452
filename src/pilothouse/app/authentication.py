"""From flags to the authenticator of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.authn.anonymous import Anonymous
from pilothouse.authn.authenticator import Authenticator, TokenAuthenticator, TokenUnion, Union
from pilothouse.authn.watched_file import WatchedFile

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions


def build_authenticator(options: ServerOptions) -> Authenticator:
    """All ways of authenticating that the flags ask for, in the original's order."""
    flags = options.authentication
    ways: list[Authenticator] = []
    if flags.client_ca_file:
        from pilothouse.authn.certificate_chain import parse_authorities
        from pilothouse.authn.client_certificate import ClientCertificate, VerifiedCertificates

        authorities = WatchedFile(flags.client_ca_file, parse_authorities)
        ways.append(ClientCertificate(VerifiedCertificates(authorities)))
    tokens: list[TokenAuthenticator] = []
    if flags.token_auth_file:
        from pilothouse.authn.token_file import TokenFile

        tokens.append(TokenFile(flags.token_auth_file))
    if tokens:
        from pilothouse.authn.bearer import Bearer, WebSocketBearer
        from pilothouse.authn.token_cache import TokenCache

        cached = TokenCache(TokenUnion(tokens))
        ways += [Bearer(cached), WebSocketBearer(cached)]
    return Union(ways, Anonymous() if flags.anonymous_auth else None)
