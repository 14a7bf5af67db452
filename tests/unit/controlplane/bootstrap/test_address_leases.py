import asyncio
import json

from pilothouse.controlplane.bootstrap.address_leases import AddressLeases
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher

PREFIX = "/registry/masterleases/"


def subset(ip: str) -> dict[str, object]:
    return {"addresses": [{"ip": ip}]}


async def test_leases_are_kept_where_and_as_kube_apiserver_keeps_them(cacher: Cacher) -> None:
    leases = AddressLeases(cacher, PREFIX, StorageFactory(cacher).codec("", "v1", "endpoints"))
    await leases.renew("192.0.2.1", subset("192.0.2.1"))
    await leases.renew("192.0.2.1", subset("192.0.2.1"), {"apiserverIdentity": "x"})
    stored = await cacher.backend.get(PREFIX + "192.0.2.1")
    assert stored is not None
    assert json.loads(stored.value) == {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {"generation": 2, "labels": {"apiserverIdentity": "x"}},
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}],
    }


async def test_every_holder_is_listed_until_it_gives_its_lease_back(cacher: Cacher) -> None:
    leases = AddressLeases(cacher, PREFIX, StorageFactory(cacher).codec("", "v1", "endpoints"))
    assert await leases.addresses() == []
    await leases.renew("b", subset("192.0.2.2"))
    await leases.renew("a", subset("192.0.2.1"))
    await leases.renew("none", {})
    assert await leases.addresses() == ["192.0.2.1", "192.0.2.2"]
    assert await leases.remove("a") is True
    assert await leases.remove("a") is False
    assert await leases.addresses() == ["192.0.2.2"]


async def test_renewing_at_the_same_time_is_no_failure(cacher: Cacher) -> None:
    leases = AddressLeases(cacher, PREFIX, StorageFactory(cacher).codec("", "v1", "endpoints"))
    await asyncio.gather(*(leases.renew("a", subset("192.0.2.1")) for _ in range(10)))
    stored = await cacher.backend.get(PREFIX + "a")
    assert stored is not None
    assert json.loads(stored.value)["metadata"]["generation"] == 10
