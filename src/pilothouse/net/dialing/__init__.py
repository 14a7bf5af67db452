"""Connections that this server opens itself: to webhooks, aggregated servers, kubelets, pods and token issuers.

One dialer makes them all. It says how TLS is spoken (``identity.py``), which addresses may be dialled (``guard.py``),
by which way (``dialer.py``: directly, or through a tunnel), and tells failures in the words of Go (``failures.py``).
"""

from pilothouse.net.dialing.dialer import DIRECT, Dialer, DirectRoute, Route, Target
from pilothouse.net.dialing.failures import DialError, OutgoingError
from pilothouse.net.dialing.guard import Guard, is_global_unicast
from pilothouse.net.dialing.identity import EITHER, PLAIN, Tls

__all__ = [
    "DIRECT",
    "EITHER",
    "PLAIN",
    "DialError",
    "Dialer",
    "DirectRoute",
    "Guard",
    "OutgoingError",
    "Route",
    "Target",
    "Tls",
    "is_global_unicast",
]
