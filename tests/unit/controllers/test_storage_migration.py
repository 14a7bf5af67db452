from __future__ import annotations

from typing import Any

from pilothouse.controllers.storage_versions import with_versions
from pilothouse.testing.running_controllers import RunningControllers


def migration(name: str, group: str, resource: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"resource": {"group": group, "resource": resource}}}


async def test_migrations() -> None:
    async with RunningControllers("storage_migration") as cluster:
        migrations = cluster.of("storagemigration.k8s.io", "v1", "storageversionmigrations")
        maps = cluster.of("", "v1", "configmaps")
        for number in range(3):
            await maps.create({"metadata": {"name": f"m{number}", "namespace": "default"}})
        for name in ("first", "second"):
            await migrations.create(migration(name, "", "configmaps"))
        for name in ("first", "second"):
            done = await cluster.wait(
                migrations, "", name, lambda obj: len((obj.get("status") or {}).get("conditions") or ()) == 2
            )
            assert [each["type"] for each in done["status"]["conditions"]] == ["Running", "Succeeded"]
            assert done["status"]["conditions"][1]["message"] == "Migration completed"
            assert int(done["status"]["resourceVersion"])
        await migrations.create(migration("events", "", "bindings"))


def test_what_servers_agree_on() -> None:
    version = {"metadata": {"name": "v"}, "status": {"conditions": []}}
    one, two = ({"apiServerID": each, "encodingVersion": each} for each in ("v1", "v2"))
    agreed = with_versions(version, [one, one], "now")["status"]
    assert agreed["commonEncodingVersion"] == "v1" and agreed["conditions"][0]["status"] == "True"
    split = with_versions({"metadata": {"name": "v"}, "status": agreed}, [one, two], "later")["status"]
    assert "commonEncodingVersion" not in split
    assert split["conditions"][0]["reason"] == "CommonEncodingVersionUnset"
    assert split["conditions"][0]["lastTransitionTime"] == "later"
