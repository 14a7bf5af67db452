"""``pilothouse console``: a URL that signs a browser in as the administrator, once, within five minutes."""

from __future__ import annotations

import argparse
import hashlib
import json
import ssl
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from pilothouse.credentials.folder_claim import holder_of
from pilothouse.credentials.pki import Pki
from pilothouse.options.own import OwnOptions

_SECONDS: Final = 10.0
_NO_SERVER: Final = "no server runs on {}; start one with `pilothouse`, or name its folder with --data-dir"
_NO_CONSOLE: Final = "the server at {} has no console; start it with --console"


class NoConsole(Exception):
    """There is nothing to sign in to. The text says what to do."""


def run(words: Sequence[str]) -> int:
    """Print the URL, and open it if told so; the exit code."""
    flags = parser().parse_args(words)
    folder = Path(flags.data_dir).absolute()
    try:
        url = sign_in(folder)
    except NoConsole as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(url)
    if sys.stdout.isatty():
        print(_notes(Pki(folder / "pki")), file=sys.stderr)
    if flags.open:
        webbrowser.open(url)
    return 0


def sign_in(folder: Path) -> str:
    """A URL with a ticket of the administrator of the server that runs on a folder. Raises ``NoConsole``."""
    holder, pki = holder_of(folder), Pki(folder / "pki")
    if holder is None:
        raise NoConsole(_NO_SERVER.format(folder))
    try:
        context = ssl.create_default_context(cafile=str(pki.ca_cert))
        context.load_cert_chain(pki.admin_cert, pki.admin_key)
        asked = Request(f"{holder.url}/console/tickets", data=b"", method="POST")
        with urlopen(asked, timeout=_SECONDS, context=context) as answer:
            return holder.url + str(json.load(answer)["path"])
    except HTTPError as error:
        error.close()
        why = _NO_CONSOLE.format(holder.url) if error.code == 404 else f"{holder.url} answered {error}"
        raise NoConsole(why) from None
    except (URLError, OSError) as error:
        raise NoConsole(f"{holder.url} cannot be asked as the administrator: {error}") from None


def _notes(pki: Pki) -> str:
    return (
        "Good once, for five minutes. The browser will say that it does not know who signed the server's certificate:\n"
        f"that is the authority in {pki.ca_cert}. The certificate's SHA-256 fingerprint is\n"
        f"{_fingerprint(pki.serving_cert)}"
    )


def _fingerprint(path: Path) -> str:
    leaf = path.read_text().partition("-----END CERTIFICATE-----")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(leaf[0] + leaf[1])).digest().hex(":").upper()


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="pilothouse console", description="Prints a URL that signs a browser in to the console, once."
    )
    made.add_argument("--open", action="store_true", help="open it in the browser of this machine")
    made.add_argument("--data-dir", default=OwnOptions().data_dir, help="the server's folder (default: %(default)s)")
    return made
