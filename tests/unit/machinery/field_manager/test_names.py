from __future__ import annotations

import pytest

from pilothouse.machinery.field_manager import manager_of


@pytest.mark.parametrize(
    ("given", "agent", "name"),
    [
        ("me", "kubectl/1.37", "me"),
        ("", "kubectl/1.37 (linux/amd64)", "kubectl"),
        ("", "", ""),
        ("", "no slash", "no slash"),
        ("", "tab\there/1", "tabhere"),
        ("", "x" * 200 + "/1", "x" * 128),
        ("", "ä" * 100 + "/1", "ä" * 64),
        ("", "ä" * 63 + "a😀/1", "ä" * 63 + "a"),
        ("", b"\xe9\xe2\x82/1".decode(errors="surrogateescape"), "\ufffd" * 3),
    ],
)
def test_names(given: str, agent: str, name: str) -> None:
    assert manager_of(given, agent) == name
