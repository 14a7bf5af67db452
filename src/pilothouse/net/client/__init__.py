"""HTTP, the client's side: heads and bodies are passed on as they are, streamed both ways, with back-pressure.

``outbound.py`` is a request, ``reply.py`` its answer, ``head.py`` reads the heads of answers, ``connection.py`` is one
connection of HTTP/1.1 and ``http2.py`` one of HTTP/2 (``http2_stream.py``: one request on it, ``http2_head.py``: its
heads), ``pool.py`` keeps connections for reuse, ``departures.py`` says when requests leave.
"""

from pilothouse.net.client.outbound import FixedHeaders, Outbound
from pilothouse.net.client.pool import HttpClient
from pilothouse.net.client.reply import Reply

__all__ = ["FixedHeaders", "HttpClient", "Outbound", "Reply"]
