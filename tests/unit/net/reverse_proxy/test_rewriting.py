"""Links to the backend lead through the proxy again; documents of any shape take linear time."""

from __future__ import annotations

import gzip
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.reverse_proxy.rewriting import Rewriter

REWRITER = Rewriter("/proxy/base", frozenset({"10.0.0.1:80", "api.example"}))


@pytest.mark.parametrize(
    ("link", "led"),
    [
        ("/page", "/proxy/base/page"),
        ("/page/", "/proxy/base/page/"),
        ("/page?a=b#c", "/proxy/base/page?a=b#c"),
        ("http://10.0.0.1:80/x", "/proxy/base/x"),
        ("https://api.example/x", "/proxy/base/x"),
        ("http://elsewhere/x", "http://elsewhere/x"),
        ("//elsewhere/x", "//elsewhere/x"),
        ("page", "page"),
        ("/proxy/base/x", "/proxy/base/x"),
        ("mailto:a@b", "mailto:a@b"),
    ],
)
def test_locations(link: str, led: str) -> None:
    assert REWRITER.location(link) == led


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<A HREF="/x">y</A>', '<a href="/proxy/base/x">y</A>'),
        ("<img src='/x' alt=b/>", '<img src="/proxy/base/x" alt="b/">'),
        ("<img src=/x />", '<img src="/proxy/base/x"/>'),
        ("<p title='&quot;'>", '<p title="&#34;">'),
        ('<!-- <a href="/x"> -->', '<!-- <a href="/x"> -->'),
        ('<script>"<a href=/x>"</script>', '<script>"<a href=/x>"</script>'),
        ("<!DOCTYPE html><br>1 < 2", "<!DOCTYPE html><br>1 < 2"),
        ('<a href="/x', '<a href="/x'),
    ],
)
def test_markup(text: str, expected: str) -> None:
    assert REWRITER.markup(text) == expected


def test_compressed_documents() -> None:
    wanted = threading.Event()
    corrected = REWRITER.document(gzip.compress(b'<a href="/x">'), b"gzip", wanted)
    assert corrected is not None and gzip.decompress(corrected) == b'<a href="/proxy/base/x">'
    assert REWRITER.document(b"not gzip", b"gzip", wanted) is None
    assert REWRITER.document(b"x", b"br", wanted) is None
    wanted.set()
    assert REWRITER.document(b"x", b"", wanted) is None, "whoever wanted it has gone"


def test_a_tag_with_more_attributes_than_any_has() -> None:
    tag = f"<A {'b ' * 1001}HREF=/x>"
    assert REWRITER.markup(f"{tag}<A HREF=/x>") == f'{tag}<a href="/proxy/base/x">'


@given(st.text("<>/ab=\"' !-", max_size=200))
def test_any_text(text: str) -> None:
    assert REWRITER.markup(text)[:0] == ""


@pytest.mark.parametrize("piece", ["<a ", '<a x="', "<!--", "<script>", "</a", "<a x='y' ", "<"])
def test_hostile_documents_end(piece: str) -> None:
    """Each would take many minutes in quadratic time."""
    assert REWRITER.markup(piece * 100_000)
