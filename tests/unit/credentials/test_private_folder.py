import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pilothouse.credentials.private_folder import make_private_folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o277])
def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private_folder(tmp_path / "data")
    finally:
        os.umask(before)
    assert mode(tmp_path / "data") == 0o700


@pytest.mark.parametrize("content", ["", "store.db", "pki"])
def test_a_folder_of_ours_is_closed(tmp_path: Path, content: str) -> None:
    tmp_path.chmod(0o755)
    if content:
        (tmp_path / content).touch()
    make_private_folder(tmp_path)
    assert mode(tmp_path) == 0o700


def test_a_folder_of_others_is_told_of(tmp_path: Path, caplog: Any) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "mail").touch()
    with caplog.at_level(logging.WARNING):
        make_private_folder(tmp_path)
    assert mode(tmp_path) == 0o755
    assert "open to others" in caplog.text
