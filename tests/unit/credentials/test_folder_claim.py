"""One server a data folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.credentials.folder_claim import NAME, FolderTaken, Holder, claimed, holder_of

ME = Holder(4711, "https://127.0.0.1:6443", 1.5)


def test_a_second_claim_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with claimed(tmp_path, ME):
        with pytest.raises(FolderTaken, match=r"pid 4711, https://127.0.0.1:6443.*--data-dir"), claimed(tmp_path, ME):
            pass
        assert holder_of(tmp_path) == ME
    assert holder_of(tmp_path) is None
    with claimed(tmp_path, ME):
        pass


def test_a_killed_server_leaves_no_claim(tmp_path: Path) -> None:
    code = (
        "import os, pathlib\n"
        "from pilothouse.credentials.folder_claim import Holder, claimed\n"
        f"with claimed(pathlib.Path({str(tmp_path)!r}), Holder(1, 'x')):\n    os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert (tmp_path / NAME).read_text()
    assert holder_of(tmp_path) is None
    with claimed(tmp_path, ME):
        assert holder_of(tmp_path) == ME


def test_a_holder_that_has_not_said_who_it_is(tmp_path: Path) -> None:
    with claimed(tmp_path, ME):
        (tmp_path / NAME).write_text("")
        with pytest.raises(FolderTaken, match="just starting"), claimed(tmp_path, ME):
            pass


def test_a_folder_without_any(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
