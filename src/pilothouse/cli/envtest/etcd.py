"""The ``etcd`` of the envtest folder. It is no etcd: it answers health checks, and says where its data is to be kept.

Our server has a store of its own and needs no etcd; envtest insists on starting one. So this process stands in the
place, and ``apiserver.py`` keeps the store in its ``--data-dir``: data lives as long as envtest wants it to, and an API
server that is started again on the same "etcd" finds it. Whoever speaks etcd's own protocol to it gets an error.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

PATH: Final = "/pilothouse/data-dir"


def main(words: Sequence[str]) -> int:
    """Serve until told to stop; flags of etcd that are not known here are passed over."""
    parser = argparse.ArgumentParser(prog="etcd", description=__doc__, allow_abbrev=False)
    parser.add_argument("--listen-client-urls", default="http://127.0.0.1:2379")
    parser.add_argument("--data-dir", default="default.etcd")
    parser.add_argument("--unsafe-no-fsync", nargs="?", help="accepted")
    flags, _ = parser.parse_known_args(words)
    data_dir = Path(flags.data_dir).absolute()
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    where = urlsplit(flags.listen_client_urls.split(",")[0])
    server = ThreadingHTTPServer((where.hostname or "127.0.0.1", where.port or 2379), _handler(data_dir))
    server.daemon_threads = True
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stop.wait()
    server.shutdown()
    return 0


def _handler(data_dir: Path) -> type[BaseHTTPRequestHandler]:
    answers = {"/health": {"health": "true"}, PATH: {"dataDir": str(data_dir)}}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(urlsplit(self.path).path)
            body = json.dumps(found or {"error": "this is no etcd, but the stand-in of pilothouse envtest"}).encode()
            self.send_response(200 if found else 501)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler
