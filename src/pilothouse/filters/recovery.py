"""The last net: whatever goes wrong inside becomes a 500 Status, and the log tells with which request it happened."""

from __future__ import annotations

import logging

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import BodyTooLarge, ClientDisconnected, MalformedBody, Response
from pilothouse.storage.backends.contract import Full, StorageError, Unavailable

logger = logging.getLogger(__name__)
_ENCODER_LIMIT = "Recursion limit reached"


def with_recovery(following: Handler) -> Handler:
    """No exception but a Status reaches the client, and no traceback ever does."""

    async def handle(request: APIRequest) -> Response:
        try:
            return await following(request)
        except errors.StatusError as error:
            return error_response(request, error)
        except (ClientDisconnected, MalformedBody, BodyTooLarge):
            raise
        except Full as error:
            return error_response(request, errors.insufficient_storage(str(error)))
        except Unavailable as error:
            logger.error("%s %s: storage: %s", request.method, request.path, error)
            return error_response(request, errors.generic(str(error)))
        except StorageError as error:
            logger.error("%s %s: storage: %s", request.method, request.path, error)
            return error_response(request, errors.internal_error(str(error)))
        except Exception as error:
            if is_too_deep(error):
                return error_response(request, errors.bad_request("exceeded max depth"))
            logger.exception("%s %s failed", request.method, request.path)
            where = f"{request.method} {request.path}"
            why = f"this request caused apiserver to panic. Look in the logs for details for {where}"
            return error_response(request, errors.internal_error(why))

    return handle


def is_too_deep(error: Exception) -> bool:
    """Whether somebody sent values nested so deeply that Python, or the JSON encoder, gave up on them."""
    return isinstance(error, RecursionError) or (isinstance(error, TypeError) and str(error) == _ENCODER_LIMIT)
