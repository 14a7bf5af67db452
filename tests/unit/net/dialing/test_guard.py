"""Addresses that must not be dialled for others, in every spelling."""

import pytest

from pilothouse.net.dialing import is_global_unicast


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "localhost",
        "",
        "127.1",
    ],
)
def test_refused(address: str) -> None:
    assert not is_global_unicast(address)


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:db8::1", "64:ff9b::a00:1"])
def test_allowed(address: str) -> None:
    assert is_global_unicast(address)
