"""How the filters turn a request away: a Status that browsers must not guess a type for, or text where whoever decides
failed."""

from __future__ import annotations

from pilothouse.authz.authorizer import escape
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import NO_SNIFFING, error_response, text_response
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.go_quote import quote
from pilothouse.net.messages import Response


def refusal(request: APIRequest, error: StatusError) -> Response:
    """The answer to a request that may not be served."""
    response = error_response(request, error)
    response.headers.append(NO_SNIFFING)
    return response


def undecided(request: APIRequest, failure: str) -> Response:
    """The answer where whoever decides failed."""
    text = f"Internal Server Error: {quote(request.target.decode(errors='replace'))}: {failure}"
    return text_response(500, escape(text).encode() + b"\n")
