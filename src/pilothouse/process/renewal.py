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
    """Knows when the first certificate is to be issued again. Costs nothing before that.

    Nor are certificates good that begin later: they were made while somebody had set the clock to the future.
    """

    def __init__(self, options: ServerOptions, now: Callable[[], float] = time.time) -> None:
        self._options, self._now = options, now
        self._good_from, self._due = self._lasting()

    async def poll(self) -> None:
        """Issue what is due. Raises StartError where the folder has been damaged."""
        if self._good_from <= self._now() < self._due:
            return
        await asyncio.to_thread(provision, self._options, self._now)
        self._good_from, self._due = self._lasting()
        logger.info("certificates were renewed; the next time is %s", time.ctime(self._due))

    def _lasting(self) -> tuple[float, float]:
        pki = self._options.derived.pki
        return (-math.inf, math.inf) if pki is None else pki.lasting() or (math.inf, 0.0)
