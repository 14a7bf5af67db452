"""The server's life, as signals that others wait for. Each is set once and stays set.

    started ──► ready ──────────────► stopping ──► delayed ──► drained ──► closed
    listens     post-start hooks      told to      the wait    requests    sockets and
                have returned         stop         is over     are done    store closed

``stopping``   readiness fails from here on, so that load balancers turn away; everything is still served
``delayed``    after ``--shutdown-delay-duration``: answers carry ``Connection: close``, watches are ended
``drained``    no request is in flight any more, or the grace period is over
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
