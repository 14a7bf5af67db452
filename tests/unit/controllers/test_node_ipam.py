from __future__ import annotations

from ipaddress import ip_network

from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.testing.faults import Faults
from pilothouse.testing.running_controllers import RunningControllers

_TWO_RANGES = ManagerSettings(cluster_networks=(ip_network("10.0.0.0/23"), ip_network("fd00::/63")))


async def test_each_node_has_ranges_of_its_own_however_often_it_changes_and_calls_fail() -> None:
    settings = ManagerSettings(cluster_networks=(ip_network("10.0.0.0/19"),))
    async with RunningControllers("node_ipam", settings=settings, faults=Faults(1)) as cluster:
        nodes = cluster.of("", "v1", "nodes")
        for number in range(32):  # exactly as many as there are ranges: none may be lost on the way
            await nodes.create({"metadata": {"name": f"n-{number}"}})
            await nodes.patch("", f"n-{number}", {"metadata": {"annotations": {"seen": "yes"}}})
        ranges = []
        for number in range(32):
            node = await cluster.wait(nodes, "", f"n-{number}", lambda obj: obj["spec"].get("podCIDR"))
            ranges += node["spec"]["podCIDRs"]
        assert sorted(ranges) == sorted(f"10.0.{number}.0/24" for number in range(32))


async def test_a_node_gets_a_range_of_each_family_and_gives_them_back_when_it_goes() -> None:
    async with RunningControllers("node_ipam", settings=_TWO_RANGES) as cluster:
        nodes = cluster.of("", "v1", "nodes")
        for name in ("a", "b"):
            await nodes.create({"metadata": {"name": name}})
        node = await cluster.wait(nodes, "", "a", lambda obj: obj["spec"].get("podCIDR"))
        other = await cluster.wait(nodes, "", "b", lambda obj: obj["spec"].get("podCIDR"))
        assert sorted(node["spec"]["podCIDRs"] + other["spec"]["podCIDRs"]) == [
            "10.0.0.0/24",
            "10.0.1.0/24",
            "fd00:0:0:1::/64",
            "fd00::/64",
        ]
        await nodes.delete("", "a")
        await nodes.create({"metadata": {"name": "c"}})
        again = await cluster.wait(nodes, "", "c", lambda obj: obj["spec"].get("podCIDR"))
        assert again["spec"]["podCIDRs"] == node["spec"]["podCIDRs"]
