from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilothouse.authn.metrics import ReloadMetrics
from pilothouse.machinery.reloaded_file import ReloadedFile


class Reloads(ReloadMetrics):
    """Remembers what it is told."""

    def __init__(self) -> None:
        super().__init__("test", "test configuration")
        self.told: list[str] = []

    def note(self, status: str) -> None:
        self.told.append(status)

    def in_force(self, content: bytes) -> None:
        self.told.append(content.decode())


@pytest.fixture
def written(tmp_path: Path):
    path, ticks = tmp_path / "numbers", iter(range(1, 100))

    def write(content: str) -> str:
        path.write_text(content)
        tick = next(ticks)
        os.utime(path, ns=(tick, tick))
        return str(path)

    return write


def test_changes_are_used_and_errors_told_once(written):
    reloads, used = Reloads(), []
    file = ReloadedFile(written("1"), int, reloads)

    def use(number: int) -> None:
        if number < 0:
            raise ValueError("negative")
        used.append(number)

    for content in ("1", "2", "x", "-3", "4"):
        written(content)
        file.poll_into(use)
        file.poll_into(use)
    assert used == [2, 4]
    assert reloads.told == ["1", "success", "2", "failure", "failure", "success", "4"]
    assert file.value == 4


def test_a_wrong_file_at_the_start(written):
    with pytest.raises(ValueError, match="invalid literal"):
        ReloadedFile(written("x"), int, Reloads())
