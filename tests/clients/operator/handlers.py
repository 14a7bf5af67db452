"""A small kopf operator: it names every boat's crew in its status and takes note before a boat goes."""

from __future__ import annotations

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True


@kopf.on.create("boats.example.com")
@kopf.on.update("boats.example.com", field="spec")
def reconcile(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    patch.status["crew"] = [f"sailor-{number}" for number in range(spec.get("size", 0))]


@kopf.on.delete("boats.example.com")
def let_go(name: str, **_: Any) -> None:
    print(f"farewell {name}", flush=True)
