"""Whether every key of a store belongs to something, and every value can be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pilothouse.process.stores.copying import Report, all_items
from pilothouse.process.stores.values import DEFINITIONS, PASSING, UnknownKey, Values
from pilothouse.registry.store.stored_form import MediaType
from pilothouse.storage.backends.contract import Backend


@dataclass(slots=True)
class Findings:
    """What a check has found."""

    objects: Counter[str] = field(default_factory=Counter)
    """How many there are in each place."""
    problems: list[str] = field(default_factory=list)


async def check_store(backend: Backend, root: str, report: Report) -> Findings:
    """Look at everything below the root."""
    findings = Findings()
    definitions = [item async for item in all_items(backend, f"{root}/{DEFINITIONS}")]
    values = Values(root, definitions)
    total = await backend.count(f"{root}/")
    async for item in all_items(backend, f"{root}/"):
        place = item.key.removeprefix(f"{root}/")
        findings.objects[place.split("/")[0]] += 1
        report("objects", findings.objects.total(), total)
        if place.startswith(PASSING):
            continue
        try:
            values.transcode(item, MediaType.OWN_JSON)
        except UnknownKey:
            findings.problems.append(f"{item.key}: belongs to nothing that is known")
        except Exception as error:
            # Whatever is wrong with a value is a finding, and the next one is looked at.
            findings.problems.append(f"{item.key}: cannot be read: {type(error).__name__}: {error}")
    return findings
