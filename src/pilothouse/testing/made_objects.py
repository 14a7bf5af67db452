"""Objects made from the schema of any built-in kind, for tests that want many of them, and odd ones.

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

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.types import ListOf, MapOf, Scalar, Special, Struct, Type

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
    "ipaddresses": {"metadata.name": "10.0.201.7"},
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
EVENT_NAMES = {
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "involvedObject": "regarding",
    "lastTimestamp": "deprecatedLastTimestamp",
    "message": "note",
    "source": "deprecatedSource",
}
"""Errors of an event name its fields as core/v1 does, whichever group it was sent to."""


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
