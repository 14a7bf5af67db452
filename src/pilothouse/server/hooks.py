"""Post-start and pre-shutdown hooks: named pieces of work that begin when the server listens and end before it stops.

Each post-start hook is also a health check ``poststarthook/<name>``, failing until the hook has returned. A hook that
raises brings the server down: half a control plane is worse than none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from pilothouse.server.health import HealthChecks

logger = logging.getLogger(__name__)
Hook = Callable[[], Awaitable[None]]


class Hooks:
    """The hooks of one chain of servers."""

    def __init__(self, checks: HealthChecks) -> None:
        self._checks = checks
        self._post_start: dict[str, Hook] = {}
        self._pre_shutdown: dict[str, Hook] = {}
        self._done: set[str] = set()
        self._made = time.monotonic()
        self.livez_grace_seconds = 0.0
        """For so long after its making, an unfinished hook does not count against the server being alive."""

    def add_post_start(self, name: str, hook: Hook) -> None:
        """Run ``hook`` once the server listens. Names are unique."""
        if name in self._post_start:
            raise ValueError(f"post-start hook {name!r} is registered twice")
        self._post_start[name] = hook
        self._checks.add(f"poststarthook/{name}", lambda: self._fault(name), ("healthz", "readyz"))
        self._checks.add(f"poststarthook/{name}", lambda: "" if self._in_grace() else self._fault(name), ("livez",))

    def _fault(self, name: str) -> str:
        return "" if name in self._done else "not finished"

    def _in_grace(self) -> bool:
        return time.monotonic() - self._made < self.livez_grace_seconds

    def add_pre_shutdown(self, name: str, hook: Hook) -> None:
        """Run ``hook`` when shutdown begins, before requests are refused."""
        self._pre_shutdown[name] = hook

    async def run_post_start(self) -> None:
        """Run all post-start hooks at once and wait for them."""
        await asyncio.gather(*(self._run(name, hook) for name, hook in self._post_start.items()))

    async def _run(self, name: str, hook: Hook) -> None:
        try:
            await hook()
        except Exception:
            logger.exception("post-start hook %s failed", name)
            raise
        self._done.add(name)

    async def run_pre_shutdown(self) -> None:
        """Run all pre-shutdown hooks, one after the other; a failure does not stop the stopping."""
        for name, hook in self._pre_shutdown.items():
            try:
                await hook()
            except Exception:
                logger.exception("pre-shutdown hook %s failed", name)
