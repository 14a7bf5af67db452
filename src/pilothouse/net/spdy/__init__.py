"""SPDY/3.1 as kubelets and older clients speak it: many streams over one upgraded connection.

``frames.py`` turns bytes into frames and back (sans-IO), ``session.py`` is one side of a connection. Windows are not
kept: neither kubelets nor clients do, and a stream that is not read holds up its connection instead.
"""

from pilothouse.net.spdy.frames import SpdyError
from pilothouse.net.spdy.session import SpdySession, SpdyStream, StreamReset

__all__ = ["SpdyError", "SpdySession", "SpdyStream", "StreamReset"]
