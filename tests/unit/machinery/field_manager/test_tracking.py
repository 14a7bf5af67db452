"""What writes do to managedFields, on real kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.field_manager.last_applied import ANNOTATION
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema import decoding
from pilothouse.machinery.structured import DEDUCED, Shape
from pilothouse.machinery.structured.ownership import MissingVersion
from pilothouse.machinery.structured.shapes import MapShape

ONE, TWO, THREE = "2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z", "2024-01-01T00:00:03Z"
STATUS = {"f:status": {}}


class Cluster:
    """One object under one field manager for each subresource, stored after each write."""

    def __init__(self, kind: str, gvk: GroupVersionKind, **more: Any) -> None:
        self.struct = types.struct(kind)
        self.gvk = gvk
        version = str(gvk.group_version)
        self.main = FieldManager(self.struct, gvk, reset_fields={version: STATUS}, **more)
        self.status = FieldManager(self.struct, gvk, subresource="status", reset_fields={version: {"f:spec": {}}})
        self.live: dict[str, Any] | None = None

    def _store(self, value: dict[str, Any]) -> None:
        metadata = {**value["metadata"], "uid": "u-1"}
        self.live, _ = decoding.decode(self.struct, {**value, "metadata": metadata})

    def update(self, value: dict[str, Any], manager: str, now: str = ONE, *, status: bool = False) -> None:
        named = {"kind": self.gvk.kind, "apiVersion": str(self.gvk.group_version), **value}
        named["metadata"] = {"name": "x", **value.get("metadata", {}), **({"uid": "u-1"} if self.live else {})}
        new, _ = decoding.decode(self.struct, named)
        if "managedFields" in named["metadata"]:
            new["metadata"]["managedFields"] = named["metadata"]["managedFields"]
        self._store((self.status if status else self.main).update(self.live, new, manager, now))

    def apply(
        self, value: dict[str, Any], manager: str, now: str = ONE, *, force: bool = False, status: bool = False
    ) -> None:
        patch = {"kind": self.gvk.kind, "apiVersion": str(self.gvk.group_version), "metadata": {"name": "x"}, **value}
        self._store((self.status if status else self.main).apply(self.live, patch, manager, force=force, now=now))

    @property
    def entries(self) -> list[dict[str, Any]]:
        assert self.live is not None
        entries: list[dict[str, Any]] = self.live["metadata"].get("managedFields", [])
        return entries

    def owned(self) -> dict[str, Any]:
        return {
            f"{entry['manager']} {entry['operation']} {entry.get('subresource', '')}".strip(): entry["fieldsV1"]
            for entry in self.entries
        }


@pytest.fixture
def config_map() -> Cluster:
    return Cluster("core.v1.ConfigMap", GroupVersionKind("", "v1", "ConfigMap"))


@pytest.fixture
def deployment() -> Cluster:
    return Cluster("apps.v1.Deployment", GroupVersionKind("apps", "v1", "Deployment"))


def failure(cluster: Cluster, *args: Any, **more: Any) -> StatusError:
    before = cluster.live
    with pytest.raises(StatusError) as caught:
        cluster.apply(*args, **more)
    assert cluster.live is before
    return caught.value


def test_create(config_map: Cluster) -> None:
    config_map.update({"data": {"b": "2", "a": "1"}, "metadata": {"labels": {"l": "x"}}}, "me")
    assert json.dumps(config_map.entries) == json.dumps(
        [
            {
                "manager": "me",
                "operation": "Update",
                "apiVersion": "v1",
                "time": ONE,
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:data": {".": {}, "f:a": {}, "f:b": {}},
                    "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
                },
            }
        ]
    )


def test_create_of_a_deployment(deployment: Cluster) -> None:
    ports = [{"containerPort": number, "protocol": "TCP"} for number in (8080, 80)]
    pod = {"containers": [{"name": "c", "image": "i", "ports": ports}], "securityContext": {}}
    deployment.update(
        {
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
            },
            "status": {"replicas": 7},
        },
        "",
    )
    port = {".": {}, "f:containerPort": {}, "f:protocol": {}}
    assert json.dumps(deployment.owned()) == json.dumps(
        {
            "unknown Update": {
                "f:spec": {
                    "f:replicas": {},
                    "f:selector": {},
                    "f:template": {
                        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"c"}': {
                                    ".": {},
                                    "f:image": {},
                                    "f:name": {},
                                    "f:ports": {
                                        ".": {},
                                        'k:{"containerPort":80,"protocol":"TCP"}': port,
                                        'k:{"containerPort":8080,"protocol":"TCP"}': port,
                                    },
                                    "f:resources": {},
                                }
                            },
                            "f:securityContext": {},
                        },
                    },
                }
            }
        }
    )


def test_update_takes_what_it_changes(config_map: Cluster) -> None:
    config_map.update({"data": {"a": "1", "b": "1"}}, "one")
    config_map.update({"data": {"a": "2", "c": "1"}}, "two", TWO)
    assert config_map.owned() == {"one Update": {"f:data": {}}, "two Update": {"f:data": {"f:a": {}, "f:c": {}}}}
    assert [entry["time"] for entry in config_map.entries] == [ONE, TWO]


def test_time_moves_only_with_a_change(config_map: Cluster) -> None:
    config_map.update({"data": {"a": "1"}}, "one")
    config_map.update({"data": {"a": "1"}}, "one", TWO)
    assert [entry["time"] for entry in config_map.entries] == [ONE]
    config_map.update({"data": {"a": "2"}}, "one", THREE)
    assert [entry["time"] for entry in config_map.entries] == [THREE]


def test_identity_fields_are_nobodys(config_map: Cluster) -> None:
    config_map.update({"data": {"a": "1"}}, "one")
    config_map.update({"data": {"a": "1"}, "metadata": {"generation": 7, "resourceVersion": "12"}}, "two", TWO)
    assert list(config_map.owned()) == ["one Update"]


def test_status_is_a_subresource(deployment: Cluster) -> None:
    spec = {"selector": {}, "template": {"spec": {"containers": []}}}
    deployment.update({"spec": {**spec, "paused": True}, "status": {"replicas": 1}}, "main")
    deployment.update({"spec": {**spec, "paused": False}, "status": {"replicas": 2}}, "ctl", status=True)
    assert deployment.owned()["ctl Update status"] == {"f:status": {"f:replicas": {}}}


@pytest.mark.parametrize("empty", [[], [{}]])
def test_managers_can_be_forgotten(config_map: Cluster, empty: list[Any]) -> None:
    config_map.update({"data": {"a": "1"}}, "one")
    config_map.update({"data": {"a": "1"}, "metadata": {"managedFields": empty}}, "one", TWO)
    assert config_map.entries == []
    config_map.update({"data": {"a": "2"}}, "two", TWO)
    assert config_map.entries == []
    error = failure(config_map, {"data": {"a": "3"}}, "me")
    assert error.message == 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    config_map.apply({"data": {"a": "2"}}, "me", THREE)
    assert config_map.owned() == {
        "before-first-apply Update": {"f:data": {".": {}, "f:a": {}}},
        "me Apply": {"f:data": {"f:a": {}}},
    }


@pytest.mark.parametrize(
    "broken", [{"operation": ""}, {"operation": "Patch"}, {"fieldsType": "FieldsV2"}, {"fieldsV1": {"bad": {}}}]
)
def test_broken_entries_are_ignored(config_map: Cluster, broken: dict[str, Any]) -> None:
    config_map.update({"data": {"a": "1"}}, "one")
    before = config_map.entries
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    config_map.update({"data": {"a": "1"}, "metadata": {"managedFields": [{**entry, **broken}]}}, "one", TWO)
    assert config_map.entries == before


def test_entries_can_be_edited(config_map: Cluster) -> None:
    config_map.update({"data": {"a": "1"}}, "one")
    renamed = [{**config_map.entries[0], "manager": "new name"}]
    config_map.update({"data": {"a": "1"}, "metadata": {"managedFields": renamed}}, "one", TWO)
    assert config_map.entries == renamed


def test_an_object_that_cannot_be_followed_keeps_its_entries() -> None:
    pods = FieldManager(types.struct("core.v1.Pod"), GroupVersionKind("", "v1", "Pod"))
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    live = {"metadata": {"uid": "u", "managedFields": [entry]}, "spec": {"containers": [None]}}
    new = {"metadata": {"uid": "u"}, "spec": {"containers": [None, None]}}
    assert pods.update(live, new, "me", ONE)["metadata"]["managedFields"] == [entry]


def test_apply_creates_and_repeats(config_map: Cluster) -> None:
    config_map.apply({"data": {"a": "1"}}, "me")
    assert config_map.owned() == {"me Apply": {"f:data": {"f:a": {}}}}
    before = config_map.live
    config_map.apply({"data": {"a": "1"}}, "me", TWO)
    assert config_map.live == before
    config_map.apply({"data": {"b": "1"}}, "me", TWO)
    assert config_map.live is not None
    assert config_map.live["data"] == {"b": "1"}
    assert config_map.entries[0]["time"] == TWO


def test_sharing_a_value_has_no_time(config_map: Cluster) -> None:
    config_map.update({"data": {"a": "1"}}, "one")
    config_map.apply({"data": {"a": "1"}}, "me", TWO)
    assert "time" not in config_map.entries[0]
    assert config_map.owned()["me Apply"] == {"f:data": {"f:a": {}}}


def test_conflicts(config_map: Cluster) -> None:
    config_map.apply({"data": {"a": "1", "b": "1"}}, "alpha")
    config_map.apply({"data": {"a": "1"}}, "beta")
    one = failure(config_map, {"data": {"b": "2"}}, "beta")
    assert (one.code, one.reason) == (409, "Conflict")
    assert one.message == 'Apply failed with 1 conflict: conflict with "alpha": .data.b'
    assert one.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "alpha"', "field": ".data.b"}]
    }
    more = failure(config_map, {"data": {"a": "3", "b": "3"}}, "gamma")
    assert more.message == (
        'Apply failed with 3 conflicts: conflicts with "alpha":\n- .data.a\n- .data.b\n'
        'conflicts with "beta":\n- .data.a'
    )
    config_map.apply({"data": {"a": "3", "b": "3"}}, "gamma", force=True)
    assert config_map.owned() == {"gamma Apply": {"f:data": {"f:a": {}, "f:b": {}}}}


def test_conflicts_name_subresource_and_version(deployment: Cluster) -> None:
    spec = {"selector": {}, "template": {"spec": {"containers": []}}}
    deployment.update({"spec": spec}, "main")
    deployment.update({"spec": spec, "status": {"replicas": 2}}, "ctl", status=True)
    error = failure(deployment, {"status": {"replicas": 3}}, "me", status=True)
    assert error.message == (
        'Apply failed with 1 conflict: conflict with "ctl" with subresource "status" using apps/v1: .status.replicas'
    )


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        (
            {"datum": {}}, 500,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .datum: field not declared in schema",
        ),
        (
            {"data": {"a": 1}, "metadata": {"name": "n", "namespace": "ns"}}, 500,
            "failed to create typed patch object (ns/n; /v1, Kind=ConfigMap): .data.a: expected string, "
            "got &value.valueUnstructured{Value:1}",
        ),
        ({"metadata": {"name": "x", "managedFields": []}}, 400, "metadata.managedFields must be nil"),
        (
            {"metadata": {"name": "x", "managedFields": [1]}}, 500,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .metadata.managedFields[0]: "
            "expected map, got &{1}",
        ),
        (
            {"metadata": {"name": "x", "managedFields": [{"manager": 1}]}}, 500,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .metadata.managedFields[0].manager: "
            "expected string, got &value.valueUnstructured{Value:1}",
        ),
        ({"kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "apps/v1"}, 400, "invalid object type: apps/v1, Kind=ConfigMap"),
        ({"apiVersion": 7, "kind": None}, 400, "invalid object type: /, Kind="),
    ],
)  # fmt: skip
def test_bad_patches(config_map: Cluster, patch: dict[str, Any], code: int, message: str) -> None:
    config_map.update({"data": {"a": "1"}}, "one")
    error = failure(config_map, patch, "me")
    assert (error.code, error.message) == (code, message)


def test_a_deep_patch_is_refused(shallow_stack: None) -> None:
    free = FieldManager(DEDUCED, GroupVersionKind("example.com", "v1", "Free"))
    deep: dict[str, Any] = {}
    for _ in range(2000):
        deep = {"a": deep}
    patch = {"apiVersion": "example.com/v1", "kind": "Free", "metadata": {"name": "x"}, "spec": deep}
    with pytest.raises(StatusError) as caught:
        free.apply(None, patch, "me", force=False, now=ONE)
    assert caught.value.code == 400
    assert free.update(None, patch, "me", ONE)["metadata"] == {"name": "x"}


def test_values_without_a_schema() -> None:
    free = FieldManager(DEDUCED, GroupVersionKind("example.com", "v1", "Free"))
    made = free.update(None, {"metadata": {"name": "x"}, "spec": {"a": {"b": 1}, "l": [1]}}, "me", ONE)
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}}
    }
    patch = {"apiVersion": "example.com/v1", "kind": "Free", "metadata": {"name": "x"}, "spec": {"a": {"b": True}}}
    applied = free.apply({**made, "apiVersion": "example.com/v1"}, patch, "me", force=True, now=TWO)
    assert applied["spec"] == {"a": {"b": True}, "l": [1]}
    assert applied["spec"]["a"]["b"] is True


def test_what_is_applied_to_nothing_belongs_to_whoever_applied_it() -> None:
    manager = FieldManager(types.struct("apps.v1.Deployment"), GroupVersionKind("apps", "v1", "Deployment"))
    patch = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 1}}
    first = manager.apply(None, patch, "me", force=False, now=ONE)
    first["spec"]["strategy"]["type"] = "Recreate"
    assert manager.apply(None, patch, "me", force=False, now=ONE)["spec"]["strategy"] == {}


def test_moving_over_from_client_side_apply(config_map: Cluster) -> None:
    applied = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1"}})
    annotations = {ANNOTATION: applied, "other": "y"}
    config_map.update({"data": {"a": "1"}, "metadata": {"annotations": annotations}}, "kubectl-client-side-apply")
    assert failure(config_map, {"data": {"a": "2"}}, "flux").code == 409
    config_map.apply({"data": {"a": "2<"}}, "kubectl", TWO)
    assert config_map.live is not None
    now = config_map.live["metadata"]["annotations"][ANNOTATION]
    assert now == '{"apiVersion":"v1","data":{"a":"2\\u003c"},"kind":"ConfigMap","metadata":{"name":"x"}}\n'
    annotations[ANNOTATION] = now
    config_map.update({"data": {"a": "3"}, "metadata": {"annotations": annotations}}, "editor", TWO)
    error = failure(config_map, {"data": {"a": "4"}}, "kubectl")
    assert error.message == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.a'


def test_entries_are_capped(config_map: Cluster) -> None:
    data: dict[str, str] = {}
    for number in range(13):
        data[f"k{number:02}"] = "x"
        config_map.update({"data": dict(data)}, f"m{number:02}", f"2024-01-01T00:00:{number:02}Z")
    assert [entry["manager"] for entry in config_map.entries] == [
        "ancient-changes", "m04", "m05", "m06", "m07", "m08", "m09", "m10", "m11", "m12",
    ]  # fmt: skip
    assert config_map.entries[0]["fieldsV1"] == {
        "f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}}
    }
    assert config_map.entries[0]["time"] == "2024-01-01T00:00:03Z"


def test_entries_of_other_versions() -> None:
    def convert(value: dict[str, Any], have: str, want: str) -> tuple[Shape, dict[str, Any]]:
        if want not in ("g/v1", "g/v2"):
            raise MissingVersion(want)
        names = {"old": "new"} if want == "g/v2" else {"new": "old"}
        spec = {names.get(key, key): item for key, item in (value.get("spec") or {}).items()}
        return DEDUCED, {**value, "apiVersion": want, "spec": spec}

    first = FieldManager(DEDUCED, GroupVersionKind("g", "v1", "K"), convert=convert)
    second = FieldManager(DEDUCED, GroupVersionKind("g", "v2", "K"), convert=convert)
    made = {"apiVersion": "g/v1", "kind": "K", "metadata": {}, "spec": {"old": 1, "x": 1}}
    live = first.update(None, made, "a", ONE)
    live["metadata"]["uid"] = "u"
    _, at_two = convert(live, "g/v1", "g/v2")
    patch = {"apiVersion": "g/v2", "kind": "K", "spec": {"new": 2}}
    with pytest.raises(StatusError) as caught:
        second.apply(at_two, patch, "b", force=False, now=TWO)
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "a" using g/v1: .spec.old'
    forced = second.apply(at_two, patch, "b", force=True, now=TWO)
    assert [(e["manager"], e["apiVersion"], e["fieldsV1"]) for e in forced["metadata"]["managedFields"]] == [
        ("b", "g/v2", {"f:spec": {".": {}, "f:new": {}}}),
        ("a", "g/v1", {"f:spec": {".": {}, "f:x": {}}}),
    ]
    gone = json.loads(json.dumps(forced).replace("g/v1", "g/v0"))
    _, back = convert({**gone, "apiVersion": "g/v2"}, "g/v2", "g/v2")
    again = second.apply(back, patch, "b", force=True, now=TWO)
    assert [e["manager"] for e in again["metadata"]["managedFields"]] == ["b"]


def test_inputs_are_left_alone(config_map: Cluster) -> None:
    config_map.apply({"data": {"a": "1"}}, "me")
    live = config_map.live
    before = json.dumps(live)
    config_map.apply({"data": {"b": "1"}}, "you")
    config_map.update({"data": {"c": "1"}}, "them")
    assert json.dumps(live) == before


def test_a_failing_conversion_fails_no_write() -> None:
    def convert(value: dict[str, Any], have: str, want: str) -> tuple[Shape, dict[str, Any]]:
        raise StatusError(500, "", "the webhook is away")

    free = FieldManager(DEDUCED, GroupVersionKind("g", "v1", "K"), convert=convert)
    entry = {"manager": "x", "operation": "Update", "apiVersion": "g/v2", "fieldsType": "FieldsV1", "fieldsV1": {}}
    live = {"metadata": {"uid": "u", "managedFields": [entry]}, "spec": {"a": 1}}
    assert free.update(live, {**live, "spec": {"a": 2}}, "me", ONE)["metadata"] == live["metadata"]


@pytest.mark.parametrize(
    ("managed", "what"),
    [
        (
            False,
            "failed to create manager for existing fields: failed to convert new object (n/a; /v1, Kind=ServiceAccount)"
            " to smd typed",
        ),
        (True, "failed to create typed live object (n/a; /v1, Kind=ServiceAccount)"),
    ],
)
def test_stored_objects_that_cannot_be_followed_refuse_an_apply(managed: bool, what: str) -> None:
    accounts = FieldManager(types.struct("core.v1.ServiceAccount"), GroupVersionKind("", "v1", "ServiceAccount"))
    metadata: dict[str, Any] = {"name": "a", "namespace": "n"}
    patch = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata, "secrets": [{"name": "s"}]}
    entries = accounts.apply(None, patch, "m", force=False, now=ONE)["metadata"]["managedFields"]
    live = {**patch, "metadata": {**metadata, "managedFields": entries if managed else []}, "secrets": [{}]}
    with pytest.raises(StatusError) as refused:
        accounts.apply(live, patch, "m", force=False, now=TWO)
    why = (
        'associative list with keys has an element that omits all key fields ["name"]'
        " (and doesn't have default values for any key fields)"
    )
    assert (refused.value.code, refused.value.message) == (500, f"{what}: .secrets: element 0: {why}")


@pytest.mark.parametrize("known", [True, False])
def test_stored_objects_that_do_not_fit(known: bool) -> None:
    spec = Shape(map=MapShape(dict, element=lambda: Shape("string")))
    shape = Shape(map=MapShape(lambda: {"spec": spec}, element=lambda: DEDUCED))
    fields = FieldManager(shape, GroupVersionKind("a.io", "v1", "A"), may_mismatch=known)
    entry = {"manager": "m", "operation": "Update", "apiVersion": "a.io/v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    live = {"spec": {"old": 1}, "metadata": {"uid": "u", "managedFields": [entry]}}
    changed = {**live, "spec": {"old": 1, "new": "x"}}
    tracked = fields.update(live, changed, "n", ONE)["metadata"]["managedFields"]
    assert [each["manager"] for each in tracked] == (["m"] if known else ["n"])
    if known:
        patch = {"apiVersion": "a.io/v1", "kind": "A"}
        with pytest.raises(StatusError) as caught:
            fields.apply(live, patch, "n", force=True, now=ONE)
        what = "failed to create typed live object (/; a.io/v1, Kind=A): .spec.old: expected string, got "
        assert caught.value.message.startswith(what)


@pytest.mark.parametrize(("sent", "owner"), [({"a": 1}, "m"), ({"a": "old"}, "n"), ({"a": "x"}, "n")])
def test_fields_that_are_dropped_whatever_they_are(sent: Any, owner: str) -> None:
    """As in kube-apiserver, which looks at what was sent before it drops it: what does not fit is nobody's."""
    spec = Shape(map=MapShape(dict, element=lambda: Shape("string")))
    shape = Shape(map=MapShape(lambda: {"spec": spec}, element=lambda: DEDUCED))
    gvk = GroupVersionKind("a.io", "v1", "A")
    fields = FieldManager(shape, gvk, subresource="status", dropped="spec".__eq__)
    entry = {"manager": "m", "operation": "Update", "apiVersion": "a.io/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:status": {"f:b": {}}}, "subresource": "status"}  # fmt: skip
    live = {"spec": {"a": "old"}, "status": {"b": 1}, "metadata": {"uid": "u", "managedFields": [entry]}}
    tracked = fields.update(live, {**live, "spec": sent, "status": {"b": 2}}, "n", ONE)["metadata"]["managedFields"]
    assert [each["manager"] for each in tracked] == [owner]
    new = {"spec": sent, "status": {"b": 2}, "metadata": {}}
    assert ("managedFields" in fields.update(None, new, "n", ONE)["metadata"]) == (owner == "n")
