"""Nobody starts a task that no one hears of: who is no supervisor and starts one is listed here with its reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[3] / "src" / "pilothouse"
# What a task group starts, it awaits.
_STARTS: Final = re.compile(r"(?<!group\.)\b(create_task|ensure_future)\(")
OWNERS: Final = {
    "aggregator/availability.py": "awaits all its probes",
    "controllers/runtime/transport.py": "a watch awaits its stream when its block is left",
    "machinery/single_flight.py": "those who share a fetch hear of its end; the last to know is the log",
    "machinery/supervision.py": "the supervisor itself",
    "net/client/connection.py": "the exchange awaits the sending of its body",
    "net/client/http2_stream.py": "the exchange hears of the sending of its body, and ends it",
    "net/client/pool.py": "all requests that wait for a connection await its dialling",
    "net/dialing/konnectivity.py": "a tunnel awaits both directions; its owner ends it",
    "net/eager.py": "tells its caller how the coroutine ended, exactly once",
    "net/grpc/channel.py": "all calls that wait for a connection await its dialling, and closing ends it",
    "net/listener.py": "awaits the sockets it hands over when it stops",
    "net/websocket.py": "the connection ends with its task and cancels it when it is lost",
    "registry/store/removal.py": "whoever deletes waits for its end, cancelled or not",
    "server/hooks.py": "the start awaits the end of telling how far it is",
    "simulation/kubelet_api/commands.py": "a command awaits the feeding of its input",
    "simulation/kubelet_api/streams.py": "a command ends with its socket, whose reading it awaits",
    "storage/backends/etcd/connection.py": "awaits all of them",
    "storage/cacher/resource.py": "all who wait for a cache await its loading, and closing does",
}


def test_every_task_has_an_owner() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if "testing" not in path.parts and _STARTS.search(path.read_text())
    }
    assert found - set(OWNERS) == set(), "start it with a Supervisor, or say here who hears of its end"
    assert set(OWNERS) - found == set()
