"""A real Chromium, driven by the WebDriver protocol of its own chromedriver: no further package is needed."""

from __future__ import annotations

import base64
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import orjson

WAIT_SECONDS = 60.0
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowDown": "\ue015", "ArrowRight": "\ue014", "Tab": "\ue004"}


def missing() -> str:
    """What is needed and not there; empty if all is."""
    needed = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "chromedriver": ("chromedriver",)}
    absent = [name for name, words in needed.items() if not any(map(shutil.which, words))]
    return f"needs {' and '.join(absent)} (Debian: apt-get install chromium chromium-driver)" if absent else ""


class Browser:
    """One window. To be closed."""

    def __init__(self, folder: Path, port: int, *, dark: bool = False) -> None:
        self._driver = subprocess.Popen(
            [shutil.which("chromedriver") or "", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._root = f"http://127.0.0.1:{port}"
        self._wait_for_driver()
        flags = [*_FLAGS, f"--user-data-dir={folder}", *(["--force-dark-mode"] if dark else [])]
        wanted = {
            "acceptInsecureCerts": True,
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._root += f"/session/{session['sessionId']}"

    def close(self) -> None:
        """End the browser and its driver."""
        try:
            self._call("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(20)

    def open(self, url: str) -> None:
        self._call("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function body returns in the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def resize(self, width: int, height: int) -> None:
        """Give the page itself, not the window, this size."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """Light or dark."""
        self._devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def _devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def click(self, selector: str, text: str = "") -> None:
        """Click what the selector finds, once it is there: the first with this text."""
        self.wait(lambda: self._find(selector, text), f"{selector} {text!r}")
        script = "const [s, t] = arguments; const found = [...document.querySelectorAll(s)]"
        self.run(f"{script}.find((each) => each.textContent.includes(t)); found.click();", selector, text)

    def type(self, selector: str, text: str) -> None:
        """Type into an element, as keys that are pressed."""
        found = self.wait(lambda: self._element(selector), selector)
        self._call("POST", f"/element/{found}/value", {"text": text})

    def press(self, key: str) -> None:
        """Press a key, wherever the focus is."""
        value = KEYS.get(key, key)
        keys = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": keys}]})

    def text(self, selector: str) -> str:
        found = self.run("const e = document.querySelector(arguments[0]); return e ? e.textContent : '';", selector)
        return str(found)

    def has(self, selector: str, text: str = "") -> bool:
        """Whether something that the selector finds has this text, once; waits until it is so."""
        return bool(self.wait(lambda: self._find(selector, text), f"{selector} {text!r}"))

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until something is so; what it gave."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{what} did not come; the page:\n{self.text('body')[:3000]}\n{self.problems()}")

    def problems(self) -> list[str]:
        """What the page complained about since the last time: errors of scripts, and what its policy forbids.

        Not what the server refused: that is told to the user.
        """
        entries = self._call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE" and entry["source"] != "network"]

    def accessible(self) -> list[tuple[str, str]]:
        """Role and name of everything that assistive technology is shown."""
        nodes = self._devtools("Accessibility.getFullAXTree", {})["nodes"]
        seen = (node for node in nodes if not node["ignored"])
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in seen]

    def _find(self, selector: str, text: str) -> bool:
        script = "const [s, t] = arguments; return [...document.querySelectorAll(s)]"
        return bool(self.run(f"{script}.some((each) => each.textContent.includes(t));", selector, text))

    def _element(self, selector: str) -> str:
        found = self._call("POST", "/elements", {"using": "css selector", "value": selector})
        return str(found[0][_ELEMENT]) if found else ""

    def _wait_for_driver(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (URLError, OSError):
                time.sleep(0.05)
        raise AssertionError("chromedriver does not get ready")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else orjson.dumps(body)
        asked = Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(asked, timeout=WAIT_SECONDS) as answer:
                return orjson.loads(answer.read())["value"]
        except HTTPError as error:
            with error:
                raise AssertionError(f"{method} {path}: {error.read().decode()[:2000]}") from None
