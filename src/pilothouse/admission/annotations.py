"""Notes for the audit event. Who writes first wins; names that are no qualified names are dropped, as webhooks and
policies may think of anything.
"""

from __future__ import annotations

import logging

from pilothouse.machinery.names import check_qualified_name

logger = logging.getLogger(__name__)


def annotate(notes: dict[str, str], key: str, value: str) -> None:
    """Add a note."""
    if key.count("/") != 1 or check_qualified_name(key):
        logger.warning("the audit annotation %s cannot be set: it is no qualified name with a prefix", key)
    elif notes.setdefault(key, value) != value:
        logger.warning("the audit annotation %s has been set already", key)
