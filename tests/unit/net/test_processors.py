"""Processors are counted by what the process may use of them."""

import os

import pytest

from pilothouse.net import processors as module
from pilothouse.net.processors import processors


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """How many there are of eight for a process in a control group, with these files below /sys/fs/cgroup."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)

    def counted(own, files):
        (tmp_path / "own").write_text(own)
        for name, text in files.items():
            file = tmp_path / "groups" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        monkeypatch.setattr(module, "_LIMIT", module.limit(tmp_path / "own", tmp_path / "groups"))
        return processors()

    return counted


@pytest.mark.parametrize(
    ("own", "files", "count"),
    [
        ("0::/", {}, 8),
        ("0::/", {"cpu.max": "max 100000\n"}, 8),
        ("0::/", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/", {"cpu.max": "250000 100000\n"}, 2),
        ("0::/", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/", {"cpu.max": "6400000 100000\n"}, 8),
        ("0::/", {"cpu.max": ""}, 8),
        ("0::/", {"cpu.max": "200000 0\n"}, 8),
        ("0::/a.slice/b.service", {"a.slice/b.service/cpu.max": "max 100000\n", "a.slice/cpu.max": "300000 100000"}, 3),
        ("0::/../../elsewhere", {"cpu.max": "400000 100000\n"}, 4),
        ("3:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "50000\n"}, 3),
        ("3:cpu,cpuacct:/x", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ("4:cpuset:/\n1:name=systemd:/x\n0::/", {"cpu.max": "200000 100000\n"}, 2),
        ("", {}, 8),
    ],
)
def test_a_limit_counts_as_so_many(counted, own, files, count):
    assert counted(own, files) == count


def test_without_control_groups_all_count(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    monkeypatch.setattr(module, "_LIMIT", module.limit(tmp_path / "none", tmp_path / "none"))
    assert processors() == 3
