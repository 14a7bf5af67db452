"""The garbage collector: what belongs to an owner that has gone goes too, unless it was to be left behind.

graph.py          who owns whom, by uid, as informers of all kinds tell it
resources.py      which kinds there are, and where objects of each are served
absent_owners.py  which owners are known not to be there, and how fast others are asked for
collector.py      what happens to objects whose owners went or are going
"""

from __future__ import annotations

from pilothouse.controllers.garbage_collector.collector import GarbageCollector
from pilothouse.controllers.manager.context import ControllerContext


def start(context: ControllerContext) -> None:
    """Start the garbage collector."""
    GarbageCollector(context).start(context.supervisor)
