"""Laying out the folder that ``KUBEBUILDER_ASSETS`` names, and answering as setup-envtest does.

    pilothouse envtest use [-p path|env|overview] [--bin-dir folder]     make it, and print where it is
    pilothouse envtest list                                              the only version there is

Whatever version is asked for, it is ours that is given: a test suite that names one need not be changed. The files are
scripts that call the Python that made them; ``kubectl`` leads to the one found on PATH.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pilothouse import KUBERNETES_VERSION

_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_NO_KUBECTL: Final = "kubectl was not on PATH when `pilothouse envtest use` ran; install it and run that again"


def run(words: Sequence[str]) -> int:
    """Run a subcommand; its exit code."""
    if words and words[0] == "run-etcd":
        from pilothouse.cli.envtest.etcd import main as run_etcd

        return run_etcd(words[1:])
    if words and words[0] == "run-apiserver":
        from pilothouse.cli.envtest.apiserver import main as run_apiserver

        return run_apiserver(words[1:])
    flags = parser().parse_args(words)
    if flags.command == "list":
        print(f"(installed)  {_version()}  {_platform()}")
        return 0
    folder = make_assets(Path(flags.bin_dir))
    if flags.print == "path":
        print(folder, end="")
    elif flags.print == "env":
        print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder))}")
    else:
        print(f"Version: {_version().removeprefix('v')}\nOS/Arch: {_platform()}\nPath: {folder}")
    return 0


def make_assets(root: Path) -> Path:
    """The folder, made or made anew."""
    version, system = _version().removeprefix("v"), _platform().replace("/", "-")
    folder = root.absolute() / "k8s" / f"{version}-{system}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in (("etcd", "run-etcd"), ("kube-apiserver", "run-apiserver")):
        line = f"exec {shlex.quote(sys.executable)} -m pilothouse envtest {command}"
        _write_script(folder / name, f'#!/bin/sh\n{line} "$@"\n')
    kubectl = shutil.which("kubectl")
    refusal = f"#!/bin/sh\necho {shlex.quote(_NO_KUBECTL)} >&2\nexit 127\n"
    _write_script(folder / "kubectl", f'#!/bin/sh\nexec {shlex.quote(kubectl)} "$@"\n' if kubectl else refusal)
    return folder


def _write_script(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(path)


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="pilothouse envtest",
        description="A folder with kube-apiserver, etcd and kubectl for controller-runtime's envtest.",
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="use|list")
    use = commands.add_parser("use", help="make the folder and print where it is")
    use.add_argument("version", nargs="?", help="accepted and not looked at: there is one version")
    use.add_argument("-p", "--print", choices=("overview", "path", "env"), default="overview")
    use.add_argument("--bin-dir", default=_default_root(), help="where folders are kept (default: %(default)s)")
    use.add_argument("-i", "--installed-only", action="store_true", help="accepted; nothing is ever downloaded")
    listing = commands.add_parser("list", help="show the version there is")
    listing.add_argument("version", nargs="?", help="accepted and not looked at")
    return made


def _default_root() -> str:
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "pilothouse", "envtest")


def _version() -> str:
    return f"v{KUBERNETES_VERSION}.0"


def _platform() -> str:
    machine = platform.machine()
    return f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}"
