"""Errors of a start name the flag, the path and the remedy."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from pilothouse.options import complete, parse
from pilothouse.options.secure_serving import SecureServingOptions


@pytest.mark.parametrize("flag", ["token-auth-file", "client-ca-file", "audit-policy-file", "service-account-key-file"])
def test_a_missing_file_is_told_with_its_flag(flag: str) -> None:
    options = parse([f"--{flag}=/nowhere/file"])
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", "/nowhere/file")
    said = options.explain(error)
    assert said.startswith(f"--{flag}: cannot open /nowhere/file: No such file or directory. Make the file")


def test_a_full_disk_is_told_with_the_folder(tmp_path: Path) -> None:
    options = complete(parse([f"--data-dir={tmp_path}"]))
    said = options.explain(OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "store.db")))
    assert str(tmp_path) in said
    assert "--data-dir" in said


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    options = complete(parse([f"--data-dir={tmp_path}"]))
    said = options.explain(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "other")))
    assert said.startswith(f"--data-dir: cannot use {tmp_path}/other: Permission denied. It must be open to the user")


def test_other_errors_are_told_as_they_are() -> None:
    assert parse([]).explain(ValueError("wrong")) == "wrong"


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127.0.0.1:{port}: Address already in use.*--secure-port"):
            SecureServingOptions(bind_address="127.0.0.1", secure_port=port).bind()


def test_an_address_of_another_machine() -> None:
    with pytest.raises(OSError, match=r"192\.0\.2\.7:7443.*--bind-address"):
        SecureServingOptions(bind_address="192.0.2.7", secure_port=7443).bind()
