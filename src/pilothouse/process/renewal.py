"""Renewing the certificates that the server made for itself while it runs, so that none ends under it.

The new files are found by those who look at files now and then; connections there are go on with what they have.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

from pilothouse.options import ServerOptions, provision

logger = logging.getLogger(__name__)


class CertificateRenewal:
    """Knows when the first certificate is to be issued again. Costs nothing before that."""

    def __init__(self, options: ServerOptions, now: Callable[[], float] = time.time) -> None:
        self._options, self._now = options, now
        pki = options.derived.pki
        self._due = math.inf if pki is None else pki.renew_at() or 0.0

    async def poll(self) -> None:
        """Issue what is due. Raises StartError where the folder has been damaged."""
        if self._now() < self._due:
            return
        self._due = await asyncio.to_thread(provision, self._options, self._now)
        logger.info("certificates were renewed; the next time is %s", time.ctime(self._due))
