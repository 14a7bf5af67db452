"""Which blocks there are in a text; what is expected is what Go's ``encoding/pem`` found in the same texts."""

import base64

import pytest

from pilothouse.apis.certificates.pem import Block, blocks

ABC = Block("A", 0, b"ABC")


def block(label: str, body: str = "QUJD\n") -> str:
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (block("A"), [ABC]),
        ("before\n" + block("A") + "between\n" + block("B") + "after", [ABC, Block("B", 0, b"ABC")]),
        (block("A").replace("\n", "\r\n"), [ABC]),
        (block("A").rstrip(), [ABC]),
        (block("A") + " \t", [ABC]),
        (block("A", ""), [Block("A", 0, b"")]),
        (block("A", "Q U\tJD\n"), [ABC]),
        (block("A", "k: v\nl: w\n\nQUJD\n"), [Block("A", 2, b"ABC")]),
        (block("A", "k: v\n"), []),
        (block("A", "Q\n"), []),
        (block("A", "AAAA=\n"), []),
        (block("A", "AA==AAAA\n"), []),
        (block("a:b"), [Block("a:b", 0, b"ABC")]),
        ("-----BEGIN a-----\n-----END a:b-----\n" + block("A"), []),
        ("-----BEGIN B-----\n" + block("A"), [ABC]),
        (block("A", "QUJD\n-----END B-----\n"), []),
        (block("B", "\n-----END A-----\n") + block("A"), [ABC]),
        ("x" + block("A"), []),
        ("-----BEGIN A----\nQUJD\n-----END A-----\n" + block("A"), [ABC]),
        ("\n-----END A-----\n" + block("A"), [ABC]),
        (block("A").removesuffix("\n") + "x\n" + block("A"), [ABC]),
    ],
)
def test_blocks(text: str, expected: list[Block]) -> None:
    assert list(blocks(text.encode())) == expected


def test_a_long_block() -> None:
    content = bytes(range(256)) * 400
    body = base64.encodebytes(content).decode()
    assert list(blocks(block("A", body).encode())) == [Block("A", 0, content)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-----BEGIN A-----\n", [ABC]),
        ("-----BEGIN a:b-----\n", [ABC]),
        ("\n-----END A-----", [Block("A", 0, b"")]),
        ("a: b\n", [Block("A", 100_000, b"ABC")]),
    ],
)
def test_texts_of_nothing_but_beginnings_or_ends(line: str, found: list[Block]) -> None:
    """They take as long as they are: each line looked at together with all others would take a quarter of an hour."""
    assert list(blocks((line * 100_000).encode())) == []
    text = "-----BEGIN A-----\n" + line * 100_000
    assert list(blocks((text + (block("A") if "BEGIN" in line else "QUJD\n-----END A-----\n")).encode())) == found
