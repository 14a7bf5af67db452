"""Notes for the audit event. Who writes first wins; names that are no qualified names are dropped, as webhooks and
policies may think of anything.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pilothouse.machinery.names import check_qualified_name
from pilothouse.machinery.workers import ABANDONED, checkpoint

logger = logging.getLogger(__name__)


def annotate(notes: dict[str, str], key: str, value: str) -> None:
    """Add a note."""
    if why := _add(notes, key, value):
        logger.warning("the audit annotation %s %s", key, why)


def annotate_all(notes: dict[str, str], prefix: str, given: Mapping[str, str]) -> None:
    """Add what somebody else thought of. Of those that cannot be set the log has one: there may be very many."""
    dropped = 0
    for name, value in given.items():
        if ABANDONED:
            checkpoint()
        key = f"{prefix}/{name}"
        if why := _add(notes, key, value):
            if not dropped:
                logger.warning("the audit annotation %s %s", key, why)
            dropped += 1
    if dropped > 1:
        logger.warning("%d audit annotations of %s are left out", dropped, prefix)


def _add(notes: dict[str, str], key: str, value: str) -> str:
    """Why it could not be added, if so."""
    if key.count("/") != 1 or check_qualified_name(key):
        return "cannot be set: it is no qualified name with a prefix"
    return "" if notes.setdefault(key, value) == value else "has been set already"
