"""A store whose power is cut at any moment has lost nothing that it acknowledged.

A writer is recorded, and the process that commits for it: every write to its files, every sync, every acknowledgement,
in order. A cut leaves what was synced before it; of everything later an arbitrary part has reached the disk, sector by
sector. From such a disk the store must open, be sound, and have all that had been acknowledged.
"""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.robustness.test_kill import WRITER, check

SECTOR = 512
FILES = ("store.db", "store.db-wal")
RECORDER = Path(__file__).with_name("power_recorder.c")


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    file: int
    offset: int
    data: bytes


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to build the recorder with")
    library = tmp_path_factory.mktemp("recorder") / "recorder.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, RECORDER, "-ldl"], check=True)
    return library


def record(recorder: Path, folder: Path, acknowledgements: int, copies: int = 0) -> list[Step]:
    """What a writer did until it had acknowledged so much, synced its database so often, and was killed."""
    recorded = folder / "records"
    recorded.mkdir()
    environment = os.environ | {"LD_PRELOAD": str(recorder), "POWER_RECORD": str(recorded)}
    command = [sys.executable, str(WRITER), str(folder / "store.db"), "r0", "w"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout is not None
        for _ in range(acknowledgements):
            writer.stdout.readline()
        while copies and copies_in(recorded) < copies:
            for _ in range(500):
                writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    return steps_in(recorded)


def copies_in(recorded: Path) -> int:
    """How often the database was synced: the log was copied into it before."""
    return sum(step.kind == "E" and step.file == 0 for step in steps_in(recorded))


def steps_in(recorded: Path) -> list[Step]:
    """What all processes did, in the order in which they did it."""
    places = [each for file in recorded.glob("*.record") for each in steps_of(file.read_bytes())]
    return [step for _, step in sorted(places, key=lambda each: each[0])]


def steps_of(recorded: bytes) -> Iterator[tuple[int, Step]]:
    """What one process did, each with its place among all steps."""
    at, head = 0, struct.Struct("<cBQQQ")
    while at + head.size <= len(recorded):
        kind, file, place, offset, length = head.unpack_from(recorded, at)
        at += head.size
        if at + length > len(recorded):
            return  # the kill came in between
        yield place, Step(kind.decode(), file, offset, recorded[at : at + length])
        at += length


def disk_after(steps: list[Step], chance: random.Random) -> dict[int, bytearray]:
    """The files as a power cut leaves them after these steps; everything there for no chance of loss."""
    durable = {file: synced_until(steps, file) for file in range(len(FILES))}
    disk: dict[int, bytearray] = {file: bytearray() for file in range(len(FILES))}
    for number, step in enumerate(steps):
        if step.kind not in "WTU":
            continue
        content = disk[step.file]
        if number < durable[step.file]:
            apply(content, step)
        elif step.kind == "W":
            for part in sectors(step):
                if chance.random() < 0.5:
                    apply(content, part)
        elif chance.random() < 0.5:
            apply(content, step)
    return disk


def synced_until(steps: list[Step], file: int) -> int:
    """Which steps the last sync of a file that ended has made last: those before it began."""
    began: dict[int, int] = {}
    durable = 0
    for number, step in enumerate(steps):
        if step.file == file and step.kind == "B":
            began[step.offset] = number
        elif step.file == file and step.kind == "E":
            durable = max(durable, began[step.offset])
    return durable


def sectors(step: Step) -> Iterator[Step]:
    start = 0
    while start < len(step.data):
        end = start + SECTOR - (step.offset + start) % SECTOR
        yield Step("W", step.file, step.offset + start, step.data[start:end])
        start = end


def apply(content: bytearray, step: Step) -> None:
    if step.kind == "W":
        end = step.offset + len(step.data)
        content.extend(bytes(max(0, end - len(content))))
        content[step.offset : end] = step.data
    elif step.kind == "T":
        del content[step.offset :]
        content.extend(bytes(step.offset - len(content)))
    else:
        content.clear()


def acknowledged_in(steps: Iterable[Step]) -> tuple[dict[str, tuple[int, int]], int]:
    lines = b"".join(step.data for step in steps if step.kind == "A").decode().splitlines(keepends=True)
    words = [line.split() for line in lines if line.endswith("\n") and line != "ready\n"]
    found = {key: (int(revision), int(length)) for _, key, revision, length in words}
    return found, max((int(revision) for _, _, revision, _ in words), default=1)


def first_open(steps: list[Step]) -> int:
    """From where on there is a store at all: when the writer said that it was ready."""
    return next(number for number, step in enumerate(steps) if step.kind == "A")


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_was_acknowledged_survives_a_power_cut(recorder: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    steps = record(recorder, tmp_path, chance.randrange(3000, 5000), copies=4)
    ready = first_open(steps)
    for number in range(12):
        cut = chance.randrange(ready + 1, len(steps))
        folder = tmp_path / f"after-{number}"
        folder.mkdir()
        for file, content in disk_after(steps[:cut], chance).items():
            (folder / FILES[file]).write_bytes(content)
        acknowledged, newest = acknowledged_in(steps[:cut])
        await check(str(folder / FILES[0]), acknowledged, newest)
        shutil.rmtree(folder)


async def test_the_test_would_notice(recorder: Path, tmp_path: Path) -> None:
    """Without what the syncs of the log made last, acknowledged writes are missing."""
    steps = record(recorder, tmp_path, 1000)
    unsynced = [step for step in steps if step.kind not in "BE"]
    acknowledged, newest = acknowledged_in(steps)
    folder = tmp_path / "after"
    folder.mkdir()
    for file, content in disk_after(unsynced, random.Random(1)).items():
        (folder / FILES[file]).write_bytes(content)
    with pytest.raises(Exception):  # noqa: B017 - how it fails depends on what is left
        await check(str(folder / FILES[0]), acknowledged, newest)
