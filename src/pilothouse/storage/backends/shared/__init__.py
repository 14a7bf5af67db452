"""The store of another process of this machine, spoken to over a socket: one process keeps the log, others follow it.

backend.py    the contract for those who follow
server.py     what the owner of the log does for each of them
messages.py   what they say to each other
"""

from pilothouse.storage.backends.shared.backend import SharedBackend
from pilothouse.storage.backends.shared.server import LogServer

__all__ = ["LogServer", "SharedBackend"]
