"""Where others learn how to verify this server's service account tokens: the OpenID documents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pilothouse.authn import openid_metadata
from pilothouse.authn.openid_metadata import CONFIGURATION_PATH, KEY_SET_MEDIA_TYPE, KEY_SET_PATH
from pilothouse.authn.token_issuing import TokenIssuing
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.machinery import errors
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.route_handlers import RouteHandler, only_get

logger = logging.getLogger(__name__)
_JSON: Final = "application/json"


def install_openid(server: GenericAPIServer, issuing: TokenIssuing, jwks_uri: str, address: str) -> None:
    """Serve both documents; an issuer that cannot have them leaves the paths unserved."""
    issuer = issuing.issuer
    try:
        openid_metadata.build_configuration(issuer, jwks_uri, address, issuing.public_keys())
    except ValueError as error:
        logger.warning("no OpenID documents are served: %s", error)
        return

    def configuration() -> bytes:
        return openid_metadata.build_configuration(issuer, jwks_uri, address, issuing.public_keys())

    def key_set() -> bytes:
        return openid_metadata.build_key_set(issuing.public_keys())

    for path, media_type, make in (
        (CONFIGURATION_PATH, _JSON, configuration),
        (KEY_SET_PATH, KEY_SET_MEDIA_TYPE, key_set),
    ):
        server.routes.add_with_slash(path, only_get(_document(media_type, make, issuing)))
        server.routes.add_prefix(path + "/", _nothing_below, hidden=True)


def _document(media_type: str, make: Callable[[], bytes], issuing: TokenIssuing) -> RouteHandler:
    async def serve(request: APIRequest) -> Response:
        if not _accepts(request.headers.get(b"accept", b""), media_type):
            why = f"406: Not Acceptable\n\nAvailable representations: {media_type}"
            return error_response(request, errors.StatusError(406, "NotAcceptable", why, {}))
        caching = (b"cache-control", b"public, max-age=%d" % issuing.keys_max_age)
        return Response(200, make(), media_type.encode(), [caching])

    return serve


def _accepts(accept: bytes, media_type: str) -> bool:
    if not accept:
        return True
    wanted = [part.partition(";")[0].strip() for part in accept.decode("latin-1").split(",")]
    return "*/*" in wanted or media_type in wanted


async def _nothing_below(request: APIRequest) -> Response:
    return error_response(request, errors.not_found_anything())
