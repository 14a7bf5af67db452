"""Values that kube-apiserver has kept in etcd, recorded with the objects that its API showed for them."""

import base64
import json
from pathlib import Path

import orjson
import pytest

from pilothouse.apis.conversion import converters_for
from pilothouse.apis.gates import default_gates
from pilothouse.apis.resources import hub_row, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.stored_form import BuiltInForm, CustomForm, MediaType, read_plain, write_plain
from pilothouse.storage.cacher import UnreadEntry

ROWS = [json.loads(line) for line in (Path(__file__).parent / "stored_values.jsonl").read_text().splitlines()]
INTERNAL = ("masterleases/", "ranges/")
COMPLETED_WHEN_READ = ("jobs/facts/j1", "persistentvolumeclaims/facts/my-persistentvolumeclaim")
"""Kept without what reading gives them, which whoever writes them back writes."""


def name(row):
    return row["key"].removeprefix("/registry/")


def resources():
    stored = {row.key: hub_row(row) for each in table().values() for row in each.resources if row.is_stored}
    return sorted(stored.items(), key=lambda item: -len(item[0]))


def form_of(row, media=MediaType.PROTOBUF):
    for key, resource in resources():
        if name(row).startswith(f"{key}/"):
            return BuiltInForm(resource, strategy_for(resource, default_gates()).default, media), resource
    return CustomForm(), None


def shown(row):
    """The object as the API shows it in a version, without what the store adds."""
    obj = row["object"]
    del obj["metadata"]["resourceVersion"]
    return obj


@pytest.mark.parametrize("row", [row for row in ROWS if not name(row).startswith(INTERNAL)], ids=name)
def test_values_are_read_as_the_api_shows_them_and_written_as_they_were(row, cacher):
    value = base64.b64decode(row["value"])
    form, resource = form_of(row)
    codec = StorageFactory(cacher, media=MediaType.PROTOBUF)
    obj, texts = form.read(value)
    if resource is None:
        assert obj == shown(row)
        assert form.write(orjson.dumps(obj)) == value
        return
    encoder = codec.codec(resource.group, resource.version, resource.name)
    data = encoder.encode(obj, texts)
    if "object" in row:
        expected = shown(row)
        version = parse_group_version(expected.pop("apiVersion"))
        asked = next(each for each in table()[version].resources if each.name == resource.name)
        from_hub = converters_for(asked)[1] or (lambda obj: obj)
        assert (expected.pop("kind"), from_hub(orjson.loads(data))) == (resource.kind, expected)
    if name(row) not in COMPLETED_WHEN_READ:
        assert form.write(data) == value
    entry = encoder.entry(row["key"], value, 7)
    assert orjson.loads(entry.data)["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("media", [MediaType.JSON, MediaType.YAML])
@pytest.mark.parametrize("row", [row for row in ROWS if not name(row).startswith(INTERNAL)], ids=name)
def test_other_media_types_say_the_same(row, media):
    protobuf, resource = form_of(row)
    other, _ = form_of(row, media)
    if resource is None:
        return
    obj, _ = protobuf.read(base64.b64decode(row["value"]))
    again, _ = other.read(other.write(orjson.dumps(obj)))
    assert again == obj


def test_leases_of_servers_are_endpoints(cacher):
    row = next(row for row in ROWS if name(row).startswith("masterleases/"))
    codec = StorageFactory(cacher, media=MediaType.PROTOBUF).codec("", "v1", "endpoints")
    lease = {"metadata": {"generation": 1}, "subsets": [{"addresses": [{"ip": "192.0.2.2"}]}]}
    assert codec.to_stored(codec.encode(lease)) == base64.b64decode(row["value"])


def test_ledgers_are_range_allocations():
    row = next(row for row in ROWS if name(row).startswith("ranges/"))
    ledger = {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": "30000-32767", "data": ""}
    value = base64.b64decode(row["value"])
    assert write_plain(ledger, MediaType.PROTOBUF) == value
    assert read_plain(value)["range"] == "30000-32767"


def test_a_definition_of_the_first_days_is_read():
    resource = next(resource for key, resource in resources() if key.endswith("/customresourcedefinitions"))
    form = BuiltInForm(resource, strategy_for(resource, default_gates()).default, MediaType.PROTOBUF)
    old = {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "version": "v1",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "additionalPrinterColumns": [{"name": "Size", "type": "string", "JSONPath": ".spec.size"}],
            "conversion": {
                "strategy": "Webhook",
                "webhookClientConfig": {"url": "https://localhost/convert"},
                "conversionReviewVersions": ["v1"],
            },
        },
    }
    spec = form.read(orjson.dumps(old) + b"\n")[0]["spec"]
    assert spec["preserveUnknownFields"] is True
    assert spec["conversion"]["webhook"]["clientConfig"] == {"url": "https://localhost/convert"}
    (version,) = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)
    assert version["additionalPrinterColumns"][0]["jsonPath"] == ".spec.size"


@pytest.mark.parametrize("row", [row for row in ROWS if not name(row).startswith(INTERNAL)], ids=name)
def test_what_is_read_partly_while_many_are_loaded_is_what_the_whole_says(row, cacher):
    _, resource = form_of(row)
    if resource is None:
        return
    value = base64.b64decode(row["value"])
    codec = StorageFactory(cacher, media=MediaType.PROTOBUF).codec(resource.group, resource.version, resource.name)
    whole, unread = codec.entry("k", value, 17), codec.unread_entry("k", value, 17)
    for each in ("key", "revision", "namespace", "name", "labels", "fields"):
        assert getattr(unread, each) == getattr(whole, each), each
    assert unread.size in (len(value), len(whole.data))
    assert unread.data == whole.data
    assert unread.size == len(whole.data)


def test_some_kinds_are_put_into_the_cache_unread(cacher):
    put_off = {
        name(row).partition("/")[0]
        for row in ROWS
        if (resource := form_of(row)[1]) is not None
        and isinstance(
            StorageFactory(cacher, media=MediaType.PROTOBUF)
            .codec(resource.group, resource.version, resource.name)
            .unread_entry("k", base64.b64decode(row["value"]), 17),
            UnreadEntry,
        )
    }
    assert {"pods", "minions", "configmaps", "secrets", "events", "endpointslices"} <= put_off
    assert not put_off & {"services", "apiextensions.k8s.io"}


def test_pods_without_defaults_are_selected_by_them(cacher):
    codec = StorageFactory(cacher, media=MediaType.PROTOBUF).codec("", "v1", "pods")
    obj = {
        "metadata": {"name": "p", "namespace": "n", "uid": "0" * 36},
        "spec": {"serviceAccount": "old", "containers": [{"name": "c", "image": "i"}]},
        "status": {"podIP": "10.0.0.1"},
    }
    value = codec.to_stored(orjson.dumps(obj))
    unread = codec.unread_entry("k", value, 17)
    assert unread.fields == codec.entry("k", value, 17).fields
    assert unread.fields["spec.restartPolicy"] == "Always"
    assert unread.fields["spec.serviceAccountName"] == "old"
    assert unread.fields["status.podIP"] == "10.0.0.1"


@pytest.mark.parametrize(
    ("media", "kept"),
    [
        (MediaType.PROTOBUF, b'{"b": 1, "a": "\\u003c"}'),
        (MediaType.JSON, b'{"b":1,"a":"\\u003c"}'),
        (MediaType.YAML, b'{"a":"\\u003c","b":1}'),
    ],
)
def test_raw_values_are_served_as_they_will_be_read(cacher, media, kept):
    """Data of controller revisions never changes: what is in memory after a write is what storage gives back."""
    codec = StorageFactory(cacher, media=media).codec("apps", "v1", "controllerrevisions")
    revision = {"metadata": {"name": "r", "namespace": "n", "uid": "u" * 36}, "data": {"b": 1, "a": "<"}, "revision": 1}
    data = codec.encode(revision, {("data",): b'{"b": 1, "a": "\\u003c"}'})
    assert b'"data":' + kept in data
    assert b'"data":' + kept in codec.entry("k", codec.to_stored(data), 1).data
