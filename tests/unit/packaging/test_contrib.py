"""What is in ``contrib/`` fits what it packs: paths, flags and extras exist, nothing has more rights than it needs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.options import parse

ROOT = Path(__file__).parents[3]
CONTRIB = ROOT / "contrib"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_WRITABLE = ("/data", "/tmp/")


def instructions() -> list[tuple[str, str]]:
    """The Containerfile, an instruction each."""
    text = re.sub(r"^#.*\n", "", (CONTRIB / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line.strip())]


def test_the_container_copies_what_is_there() -> None:
    copied = [rest.split() for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    assert copied and all((ROOT / source).exists() for *sources, _ in copied for source in sources)
    (extras,) = [rest.partition("=")[2] for word, rest in instructions() if rest.startswith("EXTRAS=")]
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_the_container_runs_as_nobody_without_a_shell() -> None:
    words = instructions()
    last = max(number for number, (word, _) in enumerate(words) if word == "FROM")
    stage = dict(words[last:])
    assert "RUN" not in stage
    assert stage["USER"] == "65532:65532"
    program, *flags = json.loads(stage["ENTRYPOINT"])
    assert program in PROJECT["scripts"]
    assert parse(flags[1:], program).own.data_dir == stage["VOLUME"]


def test_the_unit_is_understood(tmp_path: Path) -> None:
    unit = (CONTRIB / "pilothouse.service").read_text()
    (command,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, serve, *flags = command.split()
    assert (Path(program).name, serve) == ("pilothouse", "serve")
    assert parse(flags, "pilothouse").own.data_dir == "/var/lib/pilothouse"
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd here")
    (tmp_path / "pilothouse.service").write_text(unit.replace(program, shutil.which("true") or "/bin/true"))
    done = subprocess.run(
        [analyze, "verify", str(tmp_path / "pilothouse.service")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.fixture
def static_pod() -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load((CONTRIB / "kube-apiserver.yaml").read_text())
    return pod


def test_the_flags_of_the_static_pod(static_pod: dict[str, Any]) -> None:
    (container,) = static_pod["spec"]["containers"]
    program, *flags = container["command"]
    options = parse(flags, program)
    assert options.idle() == []
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    paths = [flag.partition("=")[2] for flag in flags if "=/" in flag]
    assert len(paths) > 10
    assert [path for path in paths if not any(path.startswith(mount) for mount in mounts)] == []
    assert container["securityContext"]["readOnlyRootFilesystem"] and options.own.data_dir.startswith(_WRITABLE)


def test_the_static_pod_is_valid(static_pod: dict[str, Any], server: Any) -> None:
    namespace = server.namespace("static-pods")
    static_pod["metadata"]["namespace"] = namespace
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict"
    status, _, answer = server.call("POST", path, static_pod)
    assert status == 201, answer
