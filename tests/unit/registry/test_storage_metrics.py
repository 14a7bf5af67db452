"""Objects are counted no more often than the flag says."""

from pilothouse.apis.strategy import Context
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.storage_metrics import StorageMetrics, resources_by_key
from pilothouse.storage.cacher import Cacher

COUNT = 'apiserver_resource_objects{group="",resource="configmaps"}'


class Page:
    """The metrics of a cacher, by a clock of the test's own."""

    def __init__(self, cacher: Cacher, seconds: float) -> None:
        self.now = 0.0
        metrics = StorageMetrics(lambda: [cacher], "/registry", resources_by_key, seconds, lambda: self.now)
        self._instruments = metrics.instruments()

    def lines(self) -> list[str]:
        return [line for each in self._instruments for line in each.lines()]


async def test_counting(storage: StorageFactory, cacher: Cacher) -> None:
    store = storage.store("", "v1", "configmaps")
    page, never = Page(cacher, 60.0), Page(cacher, 0.0)
    for name in "ab":
        await store.create(Context(namespace="default", now="2026-01-02T03:04:05Z"), {"metadata": {"name": name}})
        assert f"{COUNT} 1" in page.lines()
        assert not any(line.startswith("apiserver_resource_objects") for line in never.lines())
    page.now += 61
    assert f"{COUNT} 2" in page.lines()
