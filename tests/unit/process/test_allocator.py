"""Memory of large buffers goes back, whatever was freed before and lies around them."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import re, sys
from pathlib import Path
from pilothouse.process.allocator import return_large_memory

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024

return_large_memory()
for _ in range(3):
    first = b"x" * (30 << 20)
    del first
large, small = [], []
for _ in range(20):
    large.append(b"x" * (5 << 20))
    small.append(b"x" * 10_000)
full = resident()
del large
print(full - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other C libraries have no such settings")
def test_large_buffers_go_back() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 95


SMALL_PIECES = """
import asyncio, re
from pathlib import Path
from pilothouse.process.allocator import FreeMemory

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024

memory = FreeMemory()
for _ in range(2):
    large = [bytes(2_000) for _ in range(50_000)]
    kept = [bytes(2_000)]
    asyncio.run(memory.poll())
    del large
    freed = resident()
    asyncio.run(memory.poll())
    print(freed - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other C libraries have no such call")
def test_what_was_freed_in_small_pieces_goes_back_each_time() -> None:
    done = subprocess.run([sys.executable, "-c", SMALL_PIECES], capture_output=True, text=True, check=True)
    assert [int(line) >= 80 for line in done.stdout.split()] == [True, True]
