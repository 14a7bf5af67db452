import pytest

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frames import StreamFailure
from pilothouse.net.http2.request_head import make_head

GET = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/a%20b?c"), (b":authority", b"host:1")]


def test_a_request_looks_as_it_would_over_http_1() -> None:
    head = make_head([*GET, (b"accept", b"a"), (b"accept", b"b"), (b"cookie", b"x=1"), (b"cookie", b"y=2")])
    line, headers = head.line, head.headers
    assert (line.method, line.path, line.raw_path, line.query, line.minor) == ("GET", "/a b", "/a%20b", "c", 1)
    assert headers.host == b"host:1"
    assert headers.values == {b"accept": b"a", b"cookie": b"x=1; y=2", b"host": b"host:1"}
    assert headers.repeated == {b"accept": [b"a", b"b"]}
    assert head.error is None


def test_the_authority_counts_and_the_host_only_without_it() -> None:
    assert make_head([*GET, (b"host", b"other")]).headers.host == b"host:1"
    assert make_head([*GET[:3], (b"host", b"other")]).headers.host == b"other"


@pytest.mark.parametrize(
    "fields",
    [
        GET[1:],
        [GET[0], *GET[2:]],
        GET[:2],
        [*GET, GET[0]],
        [*GET, (b":status", b"200")],
        [*GET, (b":protocol", b"websocket")],
        [*GET, (b"a", b"b"), (b":authority", b"x")],
        [*GET, (b"Upper", b"b")],
        [*GET, (b"", b"b")],
        [*GET, (b"a b", b"b")],
        [*GET, (b"a", b"b\r\nc: d")],
        [*GET, (b"a", b"b\0")],
        [GET[0], GET[1], (b":path", b"no-slash")],
        [GET[0], GET[1], (b":path", b"/with space")],
        [GET[0], GET[1], (b":path", b"/%zz")],
        [GET[0], GET[1], (b":path", b"http://other/")],
        [GET[0], (b":scheme", b"ftp"), GET[2]],
        [(b":method", b"G T"), *GET[1:]],
        [*GET[:3], (b":authority", b"user@host")],
        [*GET, (b"content-length", b"-1")],
        [*GET, (b"content-length", b"1"), (b"content-length", b"2")],
        [(b":method", b"CONNECT"), *GET[1:]],
    ],
)
def test_malformed_requests(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(StreamFailure) as failure:
        make_head(fields)
    assert failure.value.code == frames.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ((b"connection", b"keep-alive"), 'request header "Connection" is not valid in HTTP/2'),
        ((b"upgrade", b"websocket"), 'request header "Upgrade" is not valid in HTTP/2'),
        ((b"transfer-encoding", b"chunked"), 'request header "Transfer-Encoding" is not valid in HTTP/2'),
        ((b"te", b"gzip"), 'request header "TE" may only be "trailers" in HTTP/2'),
    ],
)
def test_headers_of_a_connection_are_a_bad_request(field: tuple[bytes, bytes], text: str) -> None:
    assert make_head([*GET, field]).error == text


def test_trailers_are_allowed() -> None:
    assert make_head([*GET, (b"te", b"trailers")]).error is None
