"""The server's life, as signals that others wait for. Each is set once and stays set.

    started ──► ready ──────────────► stopping ──► delayed ──► drained ──► closed
    listens     post-start hooks      told to      the wait    requests    sockets and
                have returned         stop         is over     are done    store closed

``stopping``   readiness fails from here on, so that load balancers turn away; everything is still served, and the
               pre-shutdown hooks run (the server's leases are removed)
``delayed``    after ``--shutdown-delay-duration`` and those hooks: no new connections, answers carry ``Connection:
               close``, watches are ended, within ``--shutdown-watch-termination-grace-period`` where it is given. With
               ``--shutdown-send-retry-after`` connections are still accepted, and new requests get a 429
``drained``    no request is in flight any more, or ``--request-timeout`` is over
``closed``     audit events are out, background work has ended, the store is closed
"""

from __future__ import annotations

import asyncio


class Lifecycle:
    """The signals of one server."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.ready = asyncio.Event()
        self.stopping = asyncio.Event()
        self.delayed = asyncio.Event()
        self.drained = asyncio.Event()
        self.closed = asyncio.Event()

    @property
    def phase(self) -> str:
        """The newest signal's name, for logs."""
        names = ("closed", "drained", "delayed", "stopping", "ready", "started")
        return next((name for name in names if getattr(self, name).is_set()), "starting")
