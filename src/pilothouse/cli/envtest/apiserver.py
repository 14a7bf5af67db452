"""The ``kube-apiserver`` of the envtest folder: ours, on the embedded store where ``--etcd-servers`` is the stand-in.

With a real etcd in that place the flags are left as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from pilothouse.cli.envtest.etcd import PATH

_FLAG = "--etcd-servers"
_SECONDS = 5.0


def main(words: Sequence[str]) -> int:
    """Run until told to stop; the exit code."""
    from pilothouse.cli.main import main as run_command

    return run_command(translated(list(words)), "kube-apiserver")


def translated(words: list[str]) -> list[str]:
    """The flags with the folder of the stand-in in the place of its address."""
    kept, url = _without_etcd(words)
    folder = _data_dir(url) if url else ""
    return [*kept, f"--data-dir={folder}"] if folder else words


def _without_etcd(words: list[str]) -> tuple[list[str], str]:
    kept, url, following = [], "", False
    for word in words:
        if following:
            url, following = word, False
        elif word == _FLAG:
            following = True
        elif word.startswith(f"{_FLAG}="):
            url = word.partition("=")[2]
        else:
            kept.append(word)
    return kept, url.split(",")[0]


def _data_dir(url: str) -> str:
    """Where the stand-in at this address has its data; nothing if there is none."""
    if urlsplit(url).scheme != "http":
        return ""
    try:
        with urlopen(f"{url.rstrip('/')}{PATH}", timeout=_SECONDS) as answer:
            return str(json.load(answer)["dataDir"])
    except (URLError, OSError, ValueError, KeyError):
        return ""
