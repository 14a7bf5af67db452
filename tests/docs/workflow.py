"""Runs the shell steps of a GitHub Actions workflow as a runner does: one shell a step, variables by ``GITHUB_ENV``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def read_workflows(page: Path) -> list[list[dict[str, Any]]]:
    """The steps of every job that a page shows."""
    found = []
    for body in _BLOCK.findall(page.read_text()):
        read = yaml.safe_load(body)
        jobs = read["jobs"].values() if "jobs" in read else [read]
        found += [job["steps"] for job in jobs]
    return found


def run_steps(steps: Sequence[Mapping[str, Any]], folder: Path, path: Sequence[Path]) -> list[str]:
    """Run them in a checkout; what each printed. What was started in the background ends with the job."""
    shared = folder / "github-env"
    shared.touch()
    search = os.pathsep.join([*map(str, path), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "GITHUB_ENV": str(shared), "HOME": str(folder)}
    printed = []
    # What is started in the background stays in this group of processes, by which it is found again.
    leader = subprocess.Popen(["sleep", "infinity"], process_group=0)
    try:
        for command in _commands(steps):
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
                cwd=folder,
                env=environment | _assigned(shared),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=300,
                process_group=leader.pid,
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            printed.append(done.stdout)
    finally:
        os.killpg(leader.pid, signal.SIGTERM)
        leader.wait()
    return printed


def _commands(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for step in steps:
        if "run" in step and step.get("if") != "failure()":
            yield step["run"]


def _assigned(shared: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in shared.read_text().splitlines())
