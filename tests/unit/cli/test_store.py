"""The commands for the embedded store say what they found and did."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilothouse.cli.main import main
from pilothouse.storage.backends.sqlite import SQLiteBackend

CONFIG_MAP = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default"}}'


async def make(folder: Path) -> Path:
    store = SQLiteBackend(str(folder / "store.db"), upkeep_seconds=0)
    await store.open()
    await store.create("/registry/configmaps/default/a", CONFIG_MAP)
    await store.close()
    return folder / "store.db"


def test_check_repair_and_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(make(tmp_path))
    where = ["--data-dir", str(tmp_path)]
    assert main(["store", "check", *where], "pilothouse") == 0
    assert "1 objects, all readable" in capsys.readouterr().out
    assert main(["store", "snapshot", *where, "--to", str(tmp_path / "copy.db")], "pilothouse") == 0
    assert "revision 2" in capsys.readouterr().out
    assert main(["store", "repair", *where], "pilothouse") == 0
    assert "1 states of objects were saved, 0 could not be read" in capsys.readouterr().out


def test_damage_and_absence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "check", "--data-dir", str(tmp_path)], "pilothouse") == 1
    assert "does not exist" in capsys.readouterr().err
    path = asyncio.run(make(tmp_path))
    data = path.read_bytes()
    path.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    assert main(["store", "check", "--data-dir", str(tmp_path)], "pilothouse") == 1
    assert "damaged: " in capsys.readouterr().out
