"""Objects made from the schema of every built-in kind: refused with the fields at fault, or stored and read back as is.

A random object is hardly ever valid, so a refused one is mended where its causes point to and tried again. That leads
through many refusals to an object that is accepted, and shows that causes name fields that are really there.
"""

from __future__ import annotations

import base64
import copy
import random
import re
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.apis.conversion import converters_for
from pilothouse.apis.resources import Resource, hub_row, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.emptied import Emptied, forget, note_always_written
from pilothouse.machinery.schema.null_lists import settle
from pilothouse.machinery.schema.types import ListOf, MapOf, Scalar, Special, Struct, Type
from pilothouse.registry.rest.before_create import before_create
from pilothouse.registry.rest.before_update import before_update
from pilothouse.registry.store.codec import ObjectCodec

NOW = "2026-01-02T03:04:05Z"

RESOURCES = [
    resource
    for version in table().values()
    for resource in version.resources
    if resource.is_stored and resource.hub == resource.group_version
]
CONVERTED = [
    resource
    for version in table().values()
    for resource in version.resources
    if resource.is_stored and converters_for(resource)[0] is not None
]
LIKELY = ["a", "a", "a", "b", "name-1", "example.com", "example.com/x", "/a"]
ODD = [
    "",
    "Not_Valid",
    "ä",
    "x" * 70,
    "a\nb",
    "\0",
    " ",
    "*",
    "..",
    "(((",
    "1+",
    "object.x",
    "$(A)",
    "https://a:b",
    "a/b/c",
]
ODD += ["10.0.0.1", "1.2.3.4/33", "::1", "-1", "65536", "1e400", "5d", "v1", "Never", "system:x", "in (", "@every 1h"]
KEYS = ["a", "b", "example.com/b", "cpu", "memory", "pods", "c.d", "Not Valid", "", "a/", "hugepages-2Mi", "*"]
SPECIAL: dict[str, list[Any]] = {
    "Quantity": ["0", "100m", "1Gi", "3", "-1", "1.5n", "9223372036854775808", "1e30"],
    "Time": ["2024-05-01T12:00:00Z"],
    "MicroTime": ["2024-05-01T12:00:00.123456Z"],
    "Duration": ["0s", "1h0m0s", "-1s"],
    "IntOrString": [0, 80, -1, "http", "10%", "", "101%", "99999999999"],
    "RawExtension": [{"a": [1, None]}, {"apiVersion": "v1", "kind": "Thing"}],
    "FieldsV1": [{"f:metadata": {}}],
    "JSON": [{"a": 1}, [1.5], "x", False, 0],
    "SchemaOrBool": [True, False, {"type": "string"}],
    "SchemaOrArray": [{"type": "integer"}],
    "SchemaOrStringArray": [["a", "b"], {"type": "string"}],
}
NUMBERS = [1, 1, 2, 5, 80, 600, 0, -1, 65536, 2**31 - 1, -(2**31)]
LEFT_TO_THE_SERVER = {"namespace", "managedFields", "uid", "resourceVersion", "selfLink", "generateName"}
STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
SUPPORTED = re.compile(r"supported values: (.+)$")
ROUNDS = 30
CHANCES = [0.0, 0.1, 0.25, 0.5]
LABELS = {"app": "a"}
EVICTED = {"spec.target.pod": {"name": "a", "uid": "5f0c8d9e-6a2b-4c1d-9e8f-7a6b5c4d3e2f"}}
WORKLOAD = {"spec.selector.matchLabels": LABELS, "spec.template.metadata.labels": LABELS}
ANCHORS: dict[str, Object] = {
    "apiservices": {"metadata.name": "v1.example.com", "spec.group": "example.com", "spec.version": "v1"},
    "clustertrustbundles": {"spec.trustBundle": "CERTIFICATE"},
    "certificatesigningrequests": {"spec.request": "REQUEST"},
    "cronjobs": {"spec.schedule": "*/5 * * * *", "spec.jobTemplate.spec.template.spec.restartPolicy": "Never"},
    "customresourcedefinitions": {
        "metadata.name": "things.example.com",
        "spec.group": "example.com",
        "spec.names": {"plural": "things", "kind": "Thing"},
        "spec.versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
    "daemonsets": WORKLOAD,
    "deployments": WORKLOAD,
    "evictionrequests": {**EVICTED, "spec.requester": "example.com/a"},
    "evictions": EVICTED,
    "events": {"metadata.namespace": "ns", "involvedObject": {"namespace": "ns", "kind": "Pod", "name": "a"}},
    "ipaddresses": {"metadata.name": "10.0.0.1"},
    "leasecandidates": {
        "spec.binaryVersion": "1.2.3",
        "spec.emulationVersion": "1.2.3",
        "spec.leaseName": "a",
        "spec.strategy": "OldestEmulationVersion",
    },
    "persistentvolumeclaims": {"spec.accessModes": ["ReadWriteOnce"], "spec.resources.requests.storage": "1Gi"},
    "persistentvolumes": {
        "spec.accessModes": ["ReadWriteOnce"],
        "spec.capacity": {"storage": "1Gi"},
        "spec.hostPath": {"path": "/a"},
    },
    "replicasets": WORKLOAD,
    "replicationcontrollers": {"spec.selector": LABELS, "spec.template.metadata.labels": LABELS},
    "servicecidrs": {"spec.cidrs": ["10.0.0.0/24"]},
    "statefulsets": WORKLOAD,
}
"""What chance does not find: values that other fields ask for, or of a form of their own."""
CONVERTED_ANCHORS: dict[str, Object] = {
    "events": {
        "eventTime": "2024-05-01T12:00:00.123456Z",
        "regarding.namespace": "ns",
        "reportingController": "example.com/a",
        "type": "Normal",
    },
    "horizontalpodautoscalers": {"spec.scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
}
EVENT_NAMES = {
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "involvedObject": "regarding",
    "lastTimestamp": "deprecatedLastTimestamp",
    "message": "note",
    "source": "deprecatedSource",
}
"""Errors of an event name its fields as core/v1 does, whichever group it was sent to."""
PROVES_ITS_KEY = "podcertificaterequests"
"""The one kind no object of which is accepted here: it carries a signature over the pod's uid."""


def _pem() -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    day = datetime(2026, 1, 1)
    authority = x509.BasicConstraints(ca=True, path_length=None)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day + timedelta(days=9))
    certificate = builder.add_extension(authority, critical=True).sign(key, SHA256())
    request = x509.CertificateSigningRequestBuilder(name).sign(key, SHA256())
    encoded = base64.b64encode(request.public_bytes(Encoding.PEM)).decode()
    return {"CERTIFICATE": certificate.public_bytes(Encoding.PEM).decode(), "REQUEST": encoded}


PEM = _pem()


class Maker:
    """Makes JSON values that fit a schema; ``chance`` is how likely an optional field is there."""

    def __init__(self, rng: random.Random, chance: float) -> None:
        self.rng = rng
        self.chance = chance

    def struct(self, struct: Struct, depth: int = 0) -> Object:
        # Schemas of custom resources hold themselves many times over: deep down only what is required is made.
        chance = self.chance if depth < 4 else self.chance / 4 if depth < 7 else 0
        return {
            field.name: self.value(field.type, depth)
            for field in struct.fields.values()
            if (depth != 1 or field.name not in LEFT_TO_THE_SERVER)
            and (self.rng.random() < chance or (field.required and depth < 9))
        }

    def value(self, kind: Type, depth: int = 0) -> Any:
        if isinstance(kind, Struct):
            return self.struct(kind, depth + 1)
        if isinstance(kind, ListOf):
            return [self.value(kind.item, depth) for _ in range(self.rng.choice((1, 1, 1, 2, 0)))]
        if isinstance(kind, MapOf):
            return {self.rng.choice(KEYS): self.value(kind.value, depth) for _ in range(self.rng.choice((1, 1, 2, 0)))}
        if isinstance(kind, Special):
            return copy.deepcopy(self.rng.choice(SPECIAL[kind.kind]))
        assert isinstance(kind, Scalar)
        return self.scalar(kind.kind)

    def scalar(self, kind: str) -> Any:
        if kind == "string":
            return self.rng.choice(ODD if self.rng.random() < 0.2 else LIKELY)
        if kind == "bool":
            return self.rng.random() < 0.5
        if kind == "bytes":
            return base64.b64encode(self.rng.randbytes(3)).decode()
        return self.rng.choice(NUMBERS)


class Mender:
    """Changes an object where the causes of its refusal point to."""

    def __init__(self, struct: Struct, maker: Maker) -> None:
        self.struct = struct
        self.maker = maker

    def mend(self, obj: Object, causes: list[Object]) -> None:
        # From the last to the first: taking an item out of a list then leaves the places before it right.
        for cause in reversed(causes):
            steps = [key or name for key, name in STEP.findall(cause["field"])]
            if steps[0] not in self.struct.fields:
                steps[0] = EVENT_NAMES[steps[0]]
            holder, step, kind = find(self.struct, obj, steps)
            supported = SUPPORTED.search(cause["message"])
            if str(step).lower().endswith("expression") and isinstance(kind, Scalar):
                holder[step] = expression_for(cause["field"])
            elif supported and isinstance(kind, Scalar) and kind.kind == "string":
                holder[step] = self.maker.rng.choice(re.findall(r'"([^"]*)"', supported[1]))
            elif "Required" in cause["reason"] or (isinstance(holder, dict) and self.maker.rng.random() < 0.3):
                holder[step] = self._make(kind)
            elif isinstance(holder, list) or step in holder:
                del holder[step]

    def _make(self, kind: Type) -> Any:
        for _ in range(10):
            made = self.maker.value(kind, 3)
            if made:
                return made
        return made


def expression_for(field: str) -> str:
    """CEL that compiles where a policy has an expression."""
    if "jsonPatch" in field:
        return "[JSONPatch{op: 'remove', path: '/x'}]"
    if "applyConfiguration" in field:
        return "Object{}"
    return "'text'" if field.endswith(("messageExpression", "valueExpression")) else "true"


def find(kind: Type, value: Any, steps: list[str]) -> tuple[Any, Any, Type]:
    """The holder of the value a path leads to, its place there and its type; the way's last place that is there."""
    found: tuple[Any, Any, Type] | None = None
    for step in steps:
        if isinstance(kind, Struct) and isinstance(value, dict) and step in kind.fields:
            found, kind = (value, step, kind.fields[step].type), kind.fields[step].type
            value = value.get(step)
        elif isinstance(kind, MapOf) and isinstance(value, dict):
            found, kind = (value, step, kind.value), kind.value
            value = value.get(step)
        elif isinstance(kind, ListOf) and isinstance(value, list) and step.isdigit() and int(step) < len(value):
            found, kind = (value, int(step), kind.item), kind.item
            value = value[int(step)]
        else:
            break
    assert found is not None, f"no such field: {steps}"
    return found


class Kind:
    """One resource: takes objects through everything that a write does to them, without storing anything."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.struct = types.struct(resource.type_name)
        self.strategy = strategy_for(resource)
        fields = self.strategy.fields if self.strategy.field_labels else None
        self.codec = ObjectCodec(resource.kind, str(resource.group_version), fields, struct=self.struct)

    def context(self) -> Context:
        return Context(namespace="ns" if self.resource.namespaced else "", now=NOW, user="me")

    def _decoded(self, body: Object) -> Object:
        obj, _ = decode(self.struct, body, noting=True)
        if isinstance(obj, Emptied):
            note_always_written(self.struct, obj)
        return obj

    def create(self, body: Object) -> Object:
        """What is stored, as it reads back."""
        obj = self._decoded(body)
        self.strategy.default(obj)
        before_create(self.resource, self.strategy, self.context(), obj)
        self.strategy.read_back(obj)
        return self.store(obj)

    def update(self, strategy: Strategy, stored: Object, body: Object) -> Object:
        obj = self._decoded(body)
        kept = copy.deepcopy(stored)
        strategy.default(obj)
        before_update(self.resource, strategy, self.context(), obj, stored)
        strategy.read_back(obj)
        assert stored == kept, "an update must not change the old object"
        return self.store(obj)

    def store(self, obj: Object) -> Object:
        """What reads back of an accepted object, which must be just what was accepted, in its final form."""
        if isinstance(obj, Emptied):
            forget(obj)
            self.strategy.default(obj)
        entry = self.codec.entry("/key", self.codec.to_stored(self.codec.encode(obj)), 7)
        accepted = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "7"}}
        back: Object = orjson.loads(entry.data)
        assert back == settle(self.struct, {k: v for k, v in accepted.items() if k not in ("kind", "apiVersion")})
        assert all(isinstance(value, str) for value in entry.fields.values())
        again, unknown = decode(self.struct, back)
        assert not unknown
        assert again == back, "decoding must leave a stored object as it is"
        self.strategy.default(again)
        assert again == back, "defaulting again must change nothing"
        for column in self.strategy.columns:
            column.cell(back)
        return back


def anchor(body: Object, anchors: Object) -> None:
    """Set values by dotted paths."""
    for path, value in anchors.items():
        *way, last = path.split(".")
        holder = body
        for step in way:
            holder = holder.setdefault(step, {})
        holder[last] = PEM.get(value, value) if isinstance(value, str) else copy.deepcopy(value)


def accept(write: Any, struct: Struct, body: Object, maker: Maker, anchors: Object) -> Object | None:
    """Write an object until it is accepted, mending it in between; None when that does not come to an end."""
    mender = Mender(struct, maker)
    for _ in range(ROUNDS):
        try:
            stored: Object = write(copy.deepcopy(body))
            return stored
        except StatusError as refusal:
            assert refusal.code in (400, 422)
            if refusal.code == 400:
                return None
            causes = (refusal.details or {})["causes"]
            assert causes
            assert all(cause["field"] for cause in causes), refusal.message
            mender.mend(body, causes)
            anchor(body, anchors)
    return None


def go_through(resource: Resource, seed: int, chance: float) -> bool:
    """Take one object from its making to its updates; whether it was ever accepted."""
    kind = Kind(resource)
    maker = Maker(random.Random(seed), chance)
    body = maker.struct(kind.struct)
    body["metadata"] = {**body.get("metadata", {}), "name": "a"}
    stored = accept(kind.create, kind.struct, body, maker, ANCHORS.get(resource.name, {}))
    if stored is None:
        return False
    assert kind.update(kind.strategy, stored, copy.deepcopy(stored)) == stored
    if "status" in kind.strategy.subresources:
        status = kind.strategy.subresources["status"]()
        changed = {**stored, "status": maker.value(kind.struct.fields["status"].type)}
        reported = accept(lambda body: kind.update(status, stored, body), kind.struct, changed, maker, {})
        if reported is not None:
            assert kind.update(status, reported, copy.deepcopy(reported)) == reported
    return True


def name_of(resource: Resource) -> str:
    return f"{resource.name}.{resource.group}".rstrip(".")


@pytest.mark.parametrize("resource", RESOURCES, ids=name_of)
@settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32), chance=st.sampled_from(CHANCES))
def test_an_object_is_refused_by_field_or_stored_as_is(resource: Resource, seed: int, chance: float) -> None:
    go_through(resource, seed, chance)


@pytest.mark.soak
@pytest.mark.parametrize("resource", RESOURCES, ids=name_of)
def test_many_objects_are_refused_by_field_or_stored_as_is(resource: Resource) -> None:
    for seed in range(400):
        go_through(resource, seed, CHANCES[seed % len(CHANCES)])


@pytest.mark.parametrize("resource", [r for r in RESOURCES if r.name != PROVES_ITS_KEY], ids=name_of)
def test_some_object_of_every_kind_is_accepted(resource: Resource) -> None:
    assert any(go_through(resource, seed, 0.1) for seed in range(20))


class ConvertedKind(Kind):
    """A kind at a version of another shape than the one it is kept in."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(hub_row(resource))
        self.to_hub, self.from_hub = converters_for(resource)
        self.served = types.struct(resource.type_name)
        if resource.group != self.resource.group:
            self.resource, self.strategy = resource, strategy_for(resource)

    def create(self, body: Object) -> Object:
        obj, _ = decode(self.served, body)
        obj = self.to_hub(obj)
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        self.strategy.default(obj)
        before_create(self.resource, self.strategy, self.context(), obj)
        self.strategy.read_back(obj)
        return self.store(obj)


@pytest.mark.parametrize("resource", CONVERTED, ids=lambda resource: f"{resource.name}.{resource.group_version}")
@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32), chance=st.sampled_from(CHANCES))
def test_an_object_of_another_version_is_kept_and_shown_again(resource: Resource, seed: int, chance: float) -> None:
    kind = ConvertedKind(resource)
    maker = Maker(random.Random(seed), chance)
    body = {**maker.struct(kind.served), "metadata": {"name": "a"}}
    stored = accept(kind.create, kind.served, body, maker, CONVERTED_ANCHORS.get(resource.name, {}))
    if stored is not None:
        shown = kind.from_hub(copy.deepcopy(stored))
        again, unknown = decode(kind.served, shown)
        assert not unknown
        assert again == shown
        assert decode(kind.struct, kind.to_hub(again))[0] == stored
