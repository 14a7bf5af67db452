"""One reverse proxy for all that is passed on: aggregated APIs, pods, services and nodes.

``forwarding.py`` sends a request on and brings the answer back, ``upgrading.py`` does so for those that want to go on
in another protocol, ``headers.py`` knows which headers travel, ``rewriting.py`` corrects links to the backend.
"""

from pilothouse.net.reverse_proxy.forwarding import BadLocation, Destination, forward
from pilothouse.net.reverse_proxy.upgrading import BadUpgrade, pass_upgrade, wants_upgrade

__all__ = ["BadLocation", "BadUpgrade", "Destination", "forward", "pass_upgrade", "wants_upgrade"]
