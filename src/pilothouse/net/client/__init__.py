"""HTTP/1.1, the client's side: heads and bodies are passed on as they are, streamed both ways, with back-pressure.

``head.py`` reads the heads of answers, ``connection.py`` is one connection, ``pool.py`` keeps connections for reuse.
"""

from pilothouse.net.client.connection import Outbound, Reply
from pilothouse.net.client.pool import HttpClient

__all__ = ["HttpClient", "Outbound", "Reply"]
