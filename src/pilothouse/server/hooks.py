"""Post-start and pre-shutdown hooks: named pieces of work that begin when the server listens and end before it stops.

Each post-start hook is also a health check ``poststarthook/<name>``, failing until the hook has returned and, from then
on, whenever what it left running does not come back. A hook that raises brings the server down: half a control plane is
worse than none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from pilothouse.server.health import Check, HealthChecks

logger = logging.getLogger(__name__)
_PROGRESS_SECONDS: Final = 2.0
Hook = Callable[[], Awaitable[None]]


def _no_error() -> str:
    return ""


class Hooks:
    """The hooks of one chain of servers."""

    def __init__(self, checks: HealthChecks, livez_grace_seconds: float = 0.0) -> None:
        self._checks = checks
        self._livez_grace_seconds = livez_grace_seconds
        """For so long after its making, an unfinished hook does not count against the server being alive."""
        self._post_start: dict[str, Hook] = {}
        self._pre_shutdown: dict[str, Hook] = {}
        self._done: set[str] = set()
        self._made = time.monotonic()

    def add_post_start(self, name: str, hook: Hook, check: Check = _no_error, backed_by: str = "") -> None:
        """Run ``hook`` once the server listens; ``check`` tells how what it stands for is since. Names are unique."""
        if name in self._post_start:
            raise ValueError(f"post-start hook {name!r} is registered twice")
        self._post_start[name] = hook

        def error() -> str:
            return check() if name in self._done else "not finished"

        self._checks.add(f"poststarthook/{name}", error, ("healthz", "readyz"), backed_by=backed_by)
        self._checks.add(
            f"poststarthook/{name}", lambda: "" if self._in_grace() else error(), ("livez",), backed_by=backed_by
        )

    def names(self) -> list[str]:
        """Of the post-start hooks, in order."""
        return list(self._post_start)

    def _in_grace(self) -> bool:
        return time.monotonic() - self._made < self._livez_grace_seconds

    def add_pre_shutdown(self, name: str, hook: Hook) -> None:
        """Run ``hook`` when shutdown begins, before requests are refused."""
        self._pre_shutdown[name] = hook

    async def run_post_start(self) -> None:
        """Run all post-start hooks at once and wait for them. The first failure ends the others and is raised."""
        telling = asyncio.get_running_loop().create_task(self._tell_progress(), name="progress of hooks")
        try:
            async with asyncio.TaskGroup() as group:
                for name, hook in self._post_start.items():
                    group.create_task(self._run(name, hook), name=name)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            telling.cancel()
            await asyncio.wait([telling])

    async def _tell_progress(self) -> None:
        """Say now and then what a long start waits for."""
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            waiting = ", ".join(name for name in self._post_start if name not in self._done)
            logger.info(
                "starting: %d of %d hooks are done; waiting for %s", len(self._done), len(self._post_start), waiting
            )

    async def _run(self, name: str, hook: Hook) -> None:
        try:
            await hook()
        except Exception as error:
            error.add_note(f"in post-start hook {name}")
            raise
        self._done.add(name)

    async def run_pre_shutdown(self) -> None:
        """Run all pre-shutdown hooks, one after the other; a failure does not stop the stopping."""
        for name, hook in self._pre_shutdown.items():
            try:
                await hook()
            except Exception:
                logger.exception("pre-shutdown hook %s failed", name)
