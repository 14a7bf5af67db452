"""The folder of the store, the keys and the kubeconfig: for its owner alone, whatever the umask."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_OTHERS: Final = 0o077
_OURS: Final = frozenset(("pki", "store.db"))


def make_private_folder(path: Path) -> None:
    """Make the folder, or close the one there is if it is empty or ours; that of somebody else is only told of."""
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not path.stat().st_mode & _OTHERS:
            return
        names = {each.name for each in path.iterdir()}
        if names and not names & _OURS:
            logger.warning("%s is open to others, and has more in it than ours", path)
            return
    path.chmod(0o700)
