from __future__ import annotations

from pilothouse.server.lifecycle import Lifecycle


def test_lifecycle() -> None:
    life = Lifecycle()
    phases = [life.phase]
    for signal in ("started", "ready", "stopping", "delayed", "drained", "closed"):
        getattr(life, signal).set()
        phases.append(life.phase)
    assert phases == ["starting", "started", "ready", "stopping", "delayed", "drained", "closed"]
