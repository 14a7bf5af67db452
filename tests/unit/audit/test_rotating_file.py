import errno
import gzip
import os
import stat

import pytest

from pilothouse.audit.rotating_file import RotatingFile

MEGABYTE = 1024 * 1024
WRITE = os.write


class Clock:
    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


def backups(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.name != "audit.log")


def test_appends_and_keeps_others_out(tmp_path):
    path = tmp_path / "new" / "audit.log"
    file = RotatingFile(str(path))
    file.write(b"a\n")
    file.write(b"b\n")
    file.close()
    RotatingFile(str(path)).write(b"c\n")
    assert path.read_bytes() == b"a\nb\nc\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rotates_before_the_limit_is_passed(tmp_path):
    clock = Clock()
    file = RotatingFile(str(tmp_path / "audit.log"), 1, clock=clock)
    half = b"x" * (MEGABYTE // 2)
    for _ in range(5):
        file.write(half)
        clock.now += 1
    file.close()
    assert (tmp_path / "audit.log").stat().st_size == MEGABYTE // 2
    assert backups(tmp_path) == ["audit-2023-11-14T22-13-22.000.log", "audit-2023-11-14T22-13-24.000.log"]
    with pytest.raises(OSError, match="exceeds maximum file size 1048576"):
        file.write(b"x" * (MEGABYTE + 1))


def test_two_rotations_in_one_moment_lose_nothing(tmp_path):
    file = RotatingFile(str(tmp_path / "audit.log"), 1, clock=Clock())
    for _ in range(3):
        file.write(b"x" * MEGABYTE)
    file.close()
    assert len(backups(tmp_path)) == 2


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({"max_backups": 2}, ["02", "03"]),
        ({"max_days": 2}, ["02", "03"]),
        ({"max_backups": 1, "max_days": 5}, ["03"]),
        ({}, ["01", "02", "03"]),
    ],
)
def test_old_files_go(tmp_path, limits, left):
    for day in ("01", "02", "03"):
        (tmp_path / f"audit-2023-11-{day}T00-00-00.000.log").write_bytes(b"")
    (tmp_path / "audit-notes.log").write_bytes(b"")
    clock = Clock()
    clock.now = 1_699_056_000.0  # the 4th
    file = RotatingFile(str(tmp_path / "audit.log"), clock=clock, **limits)
    file.write(b"x")
    file.close()
    assert backups(tmp_path) == [*(f"audit-2023-11-{day}T00-00-00.000.log" for day in left), "audit-notes.log"]


def test_compression(tmp_path):
    name = tmp_path / "audit-2023-11-01T00-00-00.000.log"
    name.write_bytes(b"old")
    file = RotatingFile(str(tmp_path / "audit.log"), compress=True)
    file.write(b"x")
    file.close()
    assert backups(tmp_path) == [name.name + ".gz"]
    assert gzip.decompress((tmp_path / (name.name + ".gz")).read_bytes()) == b"old"


def test_a_folder_that_cannot_be_written(tmp_path):
    os.mkdir(tmp_path / "audit.log")
    with pytest.raises(OSError):
        RotatingFile(str(tmp_path / "audit.log")).write(b"x")


def test_several_writers_of_one_file_lose_no_line_and_divide_none(tmp_path):
    path = tmp_path / "audit.log"
    files = [RotatingFile(str(path), 1, shared=True) for _ in range(3)]
    line = b"%d " + b"x" * 100_000 + b"\n"
    for number in range(40):
        files[number % 3].write(line % number)
    for file in files:
        file.close()
    kept = [each.read_bytes() for each in tmp_path.iterdir()]
    assert len(kept) > 3
    assert all(len(content) <= MEGABYTE for content in kept)
    written = sorted(int(each.split()[0]) for content in kept for each in content.splitlines())
    assert written == list(range(40))


@pytest.fixture
def full_after(monkeypatch):
    """Lets a disk take so many more bytes and then no others, until told anew."""

    def limit(room):
        left = [room]

        def write(fd, data):
            taken = min(left[0], len(data))
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
            left[0] -= taken
            return WRITE(fd, data[:taken])

        monkeypatch.setattr(os, "write", write)

    return limit


def test_a_line_that_did_not_fit_leaves_no_beginning(tmp_path, full_after):
    path = tmp_path / "audit.log"
    file = RotatingFile(str(path))
    file.write(b"first\n")
    full_after(4)
    with pytest.raises(OSError, match="No space left"):
        file.write(b"second\n")
    full_after(100)
    file.write(b"third\n")
    file.close()
    assert path.read_bytes() == b"first\nthird\n"


def test_what_cannot_be_opened_again_is_nobody_elses_descriptor(tmp_path, monkeypatch):
    path = tmp_path / "audit.log"
    file = RotatingFile(str(path), shared=True)
    file.write(b"first\n")
    path.rename(tmp_path / "aside.log")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", lambda *given: (_ for _ in ()).throw(OSError(errno.EMFILE, "Too many open files")))
        with pytest.raises(OSError, match="Too many open files"):
            file.write(b"second\n")
    others = [os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT) for _ in range(8)]  # one has the number
    file.write(b"third\n")
    for fd in others:
        os.close(fd)  # EBADF if the log closed it
    file.close()
    assert (path.read_bytes(), (tmp_path / "aside.log").read_bytes()) == (b"third\n", b"first\n")
