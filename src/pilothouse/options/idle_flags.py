"""The flags that are accepted without effect. Made by ``tools/make_idle_flags.py``."""

from typing import Final

IDLE_FLAGS: Final = frozenset[str]()
