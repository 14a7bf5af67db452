import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.bearer import Bearer, WebSocketBearer, bearer_token
from pilothouse.authn.metrics import TokenCacheMetrics
from pilothouse.machinery.user import User


class Tokens:
    """Knows one token and counts the questions."""

    def __init__(self, until=100.0):
        self.asked = []
        self.until = until
        self.epoch = 0
        self.metrics = TokenCacheMetrics()

    async def lookup(self, token, audiences):
        self.asked.append((token, audiences))
        return (Authenticated(User("alice")), self.until) if token == "good" else (None, 0.0)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer good", "good"),
        ("bearer good", "good"),
        ("BEARER good", "good"),
        ("  Bearer good ", "good"),
        ("Bearer good token", "good"),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("Bearer  good", ""),
        ("Token good", ""),
        ("Basic Z29vZA==", ""),
        ("", ""),
        ("good", ""),
    ],
)
def test_bearer_token(header, token):
    assert bearer_token(header.encode()) == token


@given(st.binary())
def test_no_header_breaks_the_parser(header):
    token = bearer_token(header)
    assert " " not in token


async def test_wrong_token_is_refused_and_no_token_is_no_opinion(make_request):
    bearer = Bearer(Tokens())
    assert await bearer.authenticate(make_request()) is None
    assert await bearer.authenticate(make_request("Authorization: Basic x")) is None
    with pytest.raises(InvalidCredentials, match="invalid bearer token"):
        await bearer.authenticate(make_request("Authorization: Bearer bad"))
    assert (await bearer.authenticate(make_request("Authorization: Bearer good"))).user.name == "alice"


async def test_connection_remembers_until_time_or_epoch_ends_it(make_request):
    tokens, now = Tokens(until=100.0), [0.0]
    bearer = Bearer(tokens, ("api",), clock=lambda: now[0])
    request = make_request("Authorization: Bearer good")
    for _ in range(3):
        assert (await bearer.authenticate(request)).user.name == "alice"
    assert tokens.asked == [("good", ("api",))]
    tokens.epoch += 1
    await bearer.authenticate(request)
    assert len(tokens.asked) == 2
    now[0] = 100.0
    await bearer.authenticate(request)
    assert len(tokens.asked) == 3


async def test_another_token_on_the_same_connection_is_looked_up(make_request):
    bearer = Bearer(Tokens(), clock=lambda: 0.0)
    first = make_request("Authorization: Bearer good")
    await bearer.authenticate(first)
    with pytest.raises(InvalidCredentials):
        await bearer.authenticate(make_request("Authorization: Bearer evil", connection=first.connection))


def protocol(token: str) -> str:
    return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


HANDSHAKE = "Connection: keep-alive, Upgrade\nUpgrade: WebSocket\n"


async def test_websocket_token_is_taken_out_of_the_protocols(make_request):
    request = make_request(HANDSHAKE + f"Sec-WebSocket-Protocol: v5.k8s.io, {protocol('good')},v4.k8s.io")
    assert (await WebSocketBearer(Tokens()).authenticate(request)).user.name == "alice"
    assert request.header_values(b"sec-websocket-protocol") == [b"v5.k8s.io,v4.k8s.io"]


async def test_websocket_token_in_repeated_headers(make_request):
    lines = f"Sec-WebSocket-Protocol: a\nSec-WebSocket-Protocol: {protocol('good')}"
    request = make_request(HANDSHAKE + lines)
    await WebSocketBearer(Tokens()).authenticate(request)
    assert request.header_values(b"sec-websocket-protocol") == [b"a"]


@pytest.mark.parametrize(
    ("protocols", "error"),
    [
        (protocol("good"), "missing additional subprotocol"),
        (f"a,{protocol('good')},{protocol('good')}", "multiple base64.bearer.authorization tokens specified"),
        ("a,base64url.bearer.authorization.k8s.io.!!", "invalid base64.bearer.authorization token encoding"),
        ("a,base64url.bearer.authorization.k8s.io.abcde", "invalid base64.bearer.authorization token encoding"),
        ("a,base64url.bearer.authorization.k8s.io.__8", "invalid base64.bearer.authorization token"),
        (f"a,{protocol('bad')}", "invalid bearer token"),
    ],
)
async def test_websocket_refusals(make_request, protocols, error):
    with pytest.raises(InvalidCredentials, match=error):
        await WebSocketBearer(Tokens()).authenticate(make_request(HANDSHAKE + f"Sec-WebSocket-Protocol: {protocols}"))


@pytest.mark.parametrize("headers", ["", "Upgrade: websocket\n", "Connection: Upgrade\nUpgrade: SPDY/3.1\n", HANDSHAKE])
async def test_websocket_has_no_opinion_without_handshake_or_token(make_request, headers):
    token = "" if headers == HANDSHAKE else f"Sec-WebSocket-Protocol: a,{protocol('good')}"
    assert await WebSocketBearer(Tokens()).authenticate(make_request(headers + token)) is None
