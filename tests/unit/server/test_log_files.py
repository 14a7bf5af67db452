"""``/logs``: what is shown of a folder of log files, and what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilothouse.net.messages import Response
from pilothouse.server.log_files import _serve


class Asked:
    """As much of a request as the page looks at."""

    def __init__(self, path: str) -> None:
        self.path = path


class Writer:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    logs = tmp_path / "log"
    (logs / "apt").mkdir(parents=True)
    (logs / "a<b.log").write_text("hello\n")
    (logs / "apt" / "history.log").write_bytes(b"x" * 300_000)
    (tmp_path / "secret").write_text("no")
    (logs / "outside").symlink_to(tmp_path / "secret")
    os.mkfifo(logs / "pipe")
    return logs


async def get(folder: Path, path: str) -> Response:
    return await _serve(folder, Asked(path))  # type: ignore[arg-type]


async def body_of(response: Response) -> bytes:
    assert response.stream is not None
    writer = Writer()
    await response.stream(writer)  # type: ignore[arg-type]
    return writer.data


async def test_folders_are_pages_of_links(folder: Path) -> None:
    for path in ("/logs", "/logs/"):
        response = await get(folder, path)
        assert (response.status, response.content_type) == (200, b"text/html; charset=utf-8")
        assert b'<a href="a%3Cb.log">a&lt;b.log</a>\n<a href="apt/">apt/</a>\n' in response.body
    assert b"history.log" in (await get(folder, "/logs/apt/")).body
    redirect = await get(folder, "/logs/apt")
    assert (redirect.status, (b"location", b"apt/") in redirect.headers) == (301, True)


async def test_files_are_sent_as_they_are(folder: Path) -> None:
    response = await get(folder, "/logs/a<b.log")
    assert (response.status, response.content_type) == (200, b"text/plain; charset=utf-8")
    assert await body_of(response) == b"hello\n"
    assert len(await body_of(await get(folder, "/logs/apt/history.log"))) == 300_000


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/logs/../secret", 400),
        ("/logs/apt/../../secret", 400),
        ("/logs/outside", 404),
        ("/logs/none", 404),
        ("/logs/pipe", 404),
        (f"/logs/{'x' * 5000}", 404),
        ("/logs/\0", 404),
    ],
)
async def test_nothing_else_is_shown(folder: Path, path: str, status: int) -> None:
    assert (await get(folder, path)).status == status
