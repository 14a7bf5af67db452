"""The how-to guides work as they are printed: their commands are typed, their programs are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import find_client
from tests.docs.walkthrough import Walk, write_files
from tests.docs.workflow import read_workflows, run_steps

from pilothouse.testing.etcd_process import find_etcd
from pilothouse.testing.ports import free_port

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
SOAK = pytest.mark.soak
"""Each of these takes some seconds of processor time: left to ``make soak``."""
HERE = Path(sys.executable).parent
PYTHON_JOB, GO_JOB, CHART_JOB = range(3)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder as ``actions/checkout`` leaves it; a job's commands find pip, and with it what is installed here."""
    (tmp_path / "checkout").mkdir()
    return tmp_path / "checkout"


def path_of_tools() -> list[Path]:
    etcd = find_etcd()
    assert etcd is not None
    return [HERE, Path(find_client("kubectl", "KUBECTL")).parent, Path(etcd).parent]


@pytest.mark.parametrize(
    "guide", ["several-servers", pytest.param("backup-and-restore", marks=SOAK), pytest.param("ci", marks=SOAK)]
)
def test_the_commands_of_a_guide(guide: str, tmp_path: Path) -> None:
    with Walk(tmp_path, path_of_tools()) as walk:
        assert walk.read(GUIDES / f"{guide}.md") > 3


@pytest.mark.soak
@pytest.mark.parametrize(
    ("tool", "command", "printed"),
    [
        ("node", ["node", "--test"], "# pass 1"),
        ("javac", ["sh", "-c", "javac Pilothouse.java Try.java && java Try"], "ready"),
    ],
)
def test_servers_for_other_languages(tool: str, command: list[str], printed: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    write_files(GUIDES / "java-and-node.md", tmp_path)
    environment = {**os.environ, "PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert printed in done.stdout


@pytest.mark.soak
def test_a_workflow_tests_an_operator(checkout: Path) -> None:
    write_files(GUIDES.parent / "tutorial" / "first-operator-test.md", checkout)
    (checkout / "requirements.txt").write_text("kopf\n")
    steps = read_workflows(GUIDES / "github-actions.md")[PYTHON_JOB]
    assert re.search(r"\b\d+ passed", run_steps(steps, checkout, [HERE])[-1])


def test_a_workflow_finds_the_binaries_for_go(checkout: Path) -> None:
    """Go itself is not asked: what the last step is told is what envtest would start."""
    *steps, last = read_workflows(GUIDES / "github-actions.md")[GO_JOB]
    assert last == {"run": "go test ./..."}
    looking = {"run": 'for each in etcd kube-apiserver kubectl; do test -x "$KUBEBUILDER_ASSETS/$each"; done'}
    run_steps([*steps, looking], checkout, [HERE, Path(find_client("kubectl", "KUBECTL")).parent])


@pytest.mark.soak
def test_a_workflow_installs_a_chart(checkout: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "clients" / "chart", checkout / "chart")
    port = free_port()
    steps = read_workflows(GUIDES / "github-actions.md")[CHART_JOB]
    told = [
        {**step, "run": step["run"].replace("--bind-address", f"--secure-port={port} --bind-address")}
        for step in steps
        if "run" in step
    ]
    told.append({"run": "helm status web"})
    tools = [HERE, *(Path(find_client(name, name.upper())).parent for name in ("kubectl", "helm"))]
    assert "STATUS: deployed" in run_steps(told, checkout, tools)[-1]
