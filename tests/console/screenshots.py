"""Takes the pictures of ``docs/console.md``: ``python -m tests.console.screenshots docs/images``.

Needs Chromium; where there is a pngquant, it makes the files small.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.conftest import find_client, free_port
from tests.console.webdriver import Browser, missing

from pilothouse.cli.console import sign_in
from pilothouse.testing.in_process import InProcessServer

DEPLOYMENTS = {"web": 3, "api": 2, "cache": 1}


def fill(server: InProcessServer) -> None:
    """A cluster that has something to show."""
    kubectl(server, "create", "namespace", "shop")
    for name, replicas in DEPLOYMENTS.items():
        kubectl(server, "create", "deployment", name, f"--image={name}:1.0", f"--replicas={replicas}", "-n", "shop")
    kubectl(server, "create", "job", "import", "--image=import:1.0", "-n", "shop")
    kubectl(server, "rollout", "status", "deployment/api", "-n", "shop", "--timeout=60s")
    kubectl(server, "set", "image", "deployment/api", "api=api:1.1", "-n", "shop")


def kubectl(server: InProcessServer, *words: str) -> None:
    command = [find_client("kubectl", "KUBECTL"), "--kubeconfig", str(server.kubeconfig), *words]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def change(server: InProcessServer, number: int) -> Any:
    return kubectl(server, "annotate", "deployment/web", f"shop.example/seen={number}", "--overwrite", "-n", "shop")


def take(server: InProcessServer, browser: Browser, folder: Path) -> None:
    browser.resize(1440, 900)
    browser.open(sign_in(server.data_dir))
    browser.has(".who", "kubernetes-admin")
    go(browser, "#/objects/deployments.apps?namespace=shop&open=shop/api&tab=history")
    browser.has(".diff .plus", "api:1.1")
    browser.run(
        "const items = [...document.querySelectorAll('.versions > li')];"
        "items.find((each) => each.textContent.includes('kubectl-set')).scrollIntoView();"
    )
    settle()
    browser.screenshot(folder / "console-objects.png")
    browser.prefer("dark")
    browser.resize(1920, 1080)
    go(browser, "#/requests")
    browser.has(".tile", "Loop lag")
    kubectl(server, "scale", "deployment/cache", "--replicas=3", "-n", "shop")
    for number in range(3):
        change(server, number)
        kubectl(server, "get", "pods", "-A")
    settle()
    browser.click(".requests-table tr", "patch")
    browser.has(".journey")
    settle()
    browser.screenshot(folder / "console-requests.png")
    browser.prefer("light")
    browser.resize(390, 844)
    go(browser, "#/objects/pods?namespace=shop")
    browser.has(".grid-row .name", "web")
    settle()
    browser.screenshot(folder / "console-phone.png")


def go(browser: Browser, address: str) -> None:
    browser.run("location.hash = arguments[0]", address)


def settle() -> None:
    """Let animations end."""
    time.sleep(2.5)


def main(folder: Path) -> None:
    if missing():
        raise SystemExit(missing())
    folder.mkdir(parents=True, exist_ok=True)
    with InProcessServer(living=True) as server, tempfile.TemporaryDirectory() as profile:
        fill(server)
        browser = Browser(Path(profile), free_port())
        try:
            take(server, browser, folder)
        finally:
            browser.close()
    pngquant = shutil.which("pngquant")
    if pngquant:
        pictures = sorted(map(str, folder.glob("console-*.png")))
        subprocess.run([pngquant, "--force", "--ext=.png", "--speed=1", *pictures], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
