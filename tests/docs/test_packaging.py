"""What is in contrib/ works: the unit, the container and the static pod are run as those do who read them."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.confinement import Confined, Served, require_confinement
from tests.docs.containerfile import Stage, read_containerfile

from pilothouse.testing.ports import free_port

ROOT = Path(__file__).parents[2]
CONTRIB = ROOT / "contrib"
VENV = Path(sys.executable).parent.parent
ALONE = ("--controllers=-*", "--scheduler=false", "--simulate-nodes=0", "--workers=1")


def read_unit() -> dict[str, list[str]]:
    """The settings of the unit's service."""

    class Settings(dict[str, str]):
        def __setitem__(self, key: str, value: str | list[str]) -> None:  # a setting may be given more than once
            if key in self and isinstance(value, list):
                value = [*self[key], *value]
            super().__setitem__(key, value)  # type: ignore[assignment]

    reader = configparser.RawConfigParser(strict=False, dict_type=Settings)
    reader.optionxform = str  # type: ignore[assignment,method-assign]
    reader.read_string((CONTRIB / "pilothouse.service").read_text())
    return {key: value.split("\n") for key, value in reader["Service"].items()}


def status(data: Path) -> dict[str, object]:
    """What ``pilothouse status`` says, which must end well."""
    command = [VENV / "bin" / "pilothouse", "status", "--data-dir", data, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def check_and_stop(served: Served, data: Path) -> None:
    """It is well, only its user may read what it wrote, and it ends in an orderly way."""
    try:
        assert status(data)["ready"] is True
        assert (data / "admin.kubeconfig").stat().st_mode & 0o077 == 0
    finally:
        code = served.stop()
    assert code == 0, served.log.read_text()
    assert "Traceback" not in served.log.read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """Verified with the command where it is installed here, and not left open to much."""
    unit = tmp_path / "pilothouse.service"
    text = (CONTRIB / "pilothouse.service").read_text()
    unit.write_text(text.replace("/opt/pilothouse", str(VENV)))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_unit_runs_with_what_it_is_given(tmp_path: Path) -> None:
    require_confinement()
    unit, state = read_unit(), tmp_path / "state"
    state.mkdir(mode=int(unit["StateDirectoryMode"][0], 8))
    assert {unit[name][0] for name in ("DynamicUser", "PrivateTmp", "PrivateDevices", "NoNewPrivileges")} == {"yes"}
    assert (unit["ProtectSystem"], unit["CapabilityBoundingSet"]) == (["strict"], [""])
    service = Confined(
        user=61184,
        emptied=("/tmp", "/var/lib", "/opt"),
        shown={"/opt/pilothouse": VENV},
        folders={f"/var/lib/{unit['StateDirectory'][0]}": state},
    )
    command = [*unit["ExecStart"][0].split(), f"--secure-port={free_port()}", "--bind-address=127.0.0.1", *ALONE]
    check_and_stop(service.serve(command, tmp_path / "log"), state)


def build(stage: Stage, sources: Path, made: Path) -> None:
    """Do what the first stage does, where it does it, in folders of ours."""
    (folder,) = stage.all("WORKDIR")
    inside = {path: made / path.strip("/") for path in (folder, "/opt", "/skeleton")}
    for each in inside.values():
        each.mkdir()
    for words in stage.all("COPY"):
        *given, target = words.split()
        for name in given:
            place = (inside[folder] / target).resolve()
            if (sources / name).is_dir():
                shutil.copytree(sources / name, place, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy(sources / name, place / name)
    kept = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    for words in stage.all("RUN"):
        builder = Confined(user=0, folders=inside, emptied=("/tmp", *inside), variables=kept)
        command = builder.words(["sh", "-c", f"cd {folder} && {words}"])
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.soak
def test_the_container(tmp_path: Path) -> None:
    """Its steps make an environment that serves from a read-only root, as nobody."""
    require_confinement()
    first, image = read_containerfile((CONTRIB / "Containerfile").read_text())
    made, data = tmp_path / "made", tmp_path / "data"
    made.mkdir()
    build(first, ROOT, made)
    copies = [words.split() for words in image.all("COPY")]
    assert [words[-2:] for words in copies] == [["/opt/pilothouse", "/opt/pilothouse"], ["/skeleton", "/"]]
    shutil.copytree(made / "skeleton" / "data", data)
    assert data.stat().st_mode & 0o777 == 0o700
    (user,), (folder,), (variables,) = image.all("USER"), image.all("WORKDIR"), image.all("ENV")
    assert image.all("VOLUME") == [folder] == ["/data"]
    named = dict(word.split("=", 1) for word in variables.split())
    container = Confined(
        user=int(user.partition(":")[0]),
        emptied=("/tmp", "/opt"),
        shown={"/opt": made / "opt"},
        folders={folder: data},
        variables=named,
    )
    command = ["env", f"--chdir={folder}", *image.list_of("ENTRYPOINT"), f"--secure-port={free_port()}", *ALONE]
    check_and_stop(container.serve(command, tmp_path / "log"), data)
