"""What is said to two servers that are compared: random conversations, by the area they are about.

A maker gives the requests of one conversation, on objects of names of its own in a namespace of its own: so several can
be held at once. It must give the same for the same state of the random generator.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from differential_admission import ADMISSION_AREAS
from differential_answers import JSON, Request
from differential_clients import certificates, helm, kubectl
from differential_cluster import reshaping, scarcity, security, workloads
from differential_controllers import elections, informers, reconciles
from differential_conversions import conversions
from differential_definitions import documents, ratchets
from differential_devices import devices
from differential_fields import set_some_field, some_of, status_of, structs_in
from differential_pods import pods
from differential_samples import SAMPLES, place, sound
from differential_schemas import expressions, judgements, rewritings, schemas
from differential_storage import flows, storage
from differential_tables import columns, quotes, selections
from differential_texts import json_texts, yaml_texts
from differential_verbs import VERB_AREAS
from differential_versions import versions


class Names(NamedTuple):
    """What a conversation may call its own."""

    namespace: str
    name: str


Maker = Callable[[random.Random, Names], list[Request]]
RBAC = "rbac.authorization.k8s.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
PROTOBUF, TABLE = "application/vnd.kubernetes.protobuf", "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_VALIDATIONS = ("Strict", "Warn", "Ignore")
_NUMBERS = (
    "1",
    "1.0",
    "1e2",
    "1e400",
    "-1e400",
    "123456789012345678901234567890",
    "0.1",
    "-0",
    "1E+2",
    "9223372036854775808",
)
_VALUES: tuple[Any, ...] = (None, True, 1, -1, 1.5, "", "a", "1", [], {}, [1], {"a": 1}, "x" * 300, "é", "\u0000")


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def _maps(names: Names) -> str:
    return f"/api/v1/namespaces/{names.namespace}/configmaps"


def _things(names: Names) -> str:
    return f"/apis/differ.example/v1/namespaces/{names.namespace}/things"


def _map(names: Names, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": names.name}, **more}


def numbers(choice: random.Random, names: Names) -> list[Request]:
    """Numbers where others are wanted, in bodies and patches of built-in and custom kinds."""
    number, name = choice.choice(_NUMBERS), names.name
    place = choice.choice(('"spec":{"replicas":%s}', '"metadata":{"generation":%s}', '"spec":{"minReadySeconds":%s}'))
    head = f'"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}"}}'
    body = f"{{{head},{place % number}}}".encode()
    path = f"/apis/apps/v1/namespaces/{names.namespace}/deployments"
    crd = f'{{"apiVersion":"differ.example/v1","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{{"n":{number}}}}}'
    things = _things(names)
    return [
        Request("POST", path, body),
        Request("POST", things, crd.encode()),
        Request("GET", f"{things}/{name}"),
        Request("PATCH", f"{things}/{name}", b'{"spec":{"n":%b}}' % choice.choice(_NUMBERS).encode(), MERGE),
        Request(
            "PATCH", f"{things}/{name}", b'[{"op":"add","path":"/spec/m","value":%b}]' % number.encode(), JSON_PATCH
        ),
        Request("DELETE", f"{things}/{name}"),
        Request("DELETE", f"{path}/{name}"),
    ]


def media(choice: random.Random, names: Names) -> list[Request]:
    """Content types and accepted types, right and wrong."""
    types = (
        JSON,
        "application/yaml",
        PROTOBUF,
        "text/plain",
        "",
        "*/*",
        "application/*",
        TABLE,
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=Table;g=meta.k8s.io;v=v9",
        "application/json; charset=utf-8",
        "application/json;q=0",
        MERGE,
        APPLY,
        STRATEGIC,
        JSON_PATCH,
        ";",
        "application/cbor",
        "application/json,application/yaml",
        f"{PROTOBUF};type=x",
        "application/json;stream=watch",
        "APPLICATION/JSON",
    )
    where = choice.choice((_maps(names), DEFINITIONS, SERVICES, "/apis/differ.example/v1/things", _things(names)))
    alone = "?limit=1&fieldSelector=metadata.name%3Dthings.differ.example"
    return [
        Request("POST", where, _dump(_map(names)), choice.choice(types), choice.choice(types)),
        Request("GET", where + choice.choice((f"/{names.name}", alone)), accept=choice.choice(types)),
        Request("PATCH", f"{where}/{names.name}", b"{}", choice.choice(types), choice.choice(types)),
        Request("PUT", f"{where}/{names.name}", b"{}", choice.choice(types), choice.choice(types)),
        Request("DELETE", f"{where}/{names.name}", choice.choice((None, b"{}")), choice.choice(types), JSON),
        Request("DELETE", f"{where}/{names.name}", None, accept=choice.choice(types)),
    ]


def definitions(choice: random.Random, names: Names) -> list[Request]:
    """Definitions with something wrong in them."""
    group = f"{names.name}.example"
    schema: dict[str, Any] = {"type": "object"}
    if choice.random() < 0.5:
        schema["properties"] = {"spec": dict(choice.choice(_SCHEMAS))}
    spec: dict[str, Any] = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "others", "kind": "Other"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
    }
    version = spec["versions"][0]
    target = choice.choice((spec, spec["names"], version, schema, schema.get("properties", {}).get("spec", schema)))
    target[choice.choice((*target, *_FIELDS_OF_DEFINITIONS))] = choice.choice(_VALUES)
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    body["metadata"] = {"name": f"others.{group}"}
    patch = _dump({"spec": {choice.choice(tuple(spec)): choice.choice(_VALUES)}})
    path = f"{DEFINITIONS}/others.{group}"
    return [
        Request("POST", f"{DEFINITIONS}?fieldValidation={choice.choice(_VALIDATIONS)}", _dump(body)),
        Request("GET", path, awaits='"InitialNamesAccepted"'),
        Request("PATCH", path, patch, choice.choice((MERGE, APPLY + "?", JSON_PATCH))),
        Request("DELETE", path, _dump({"preconditions": {"uid": choice.choice(("", "x"))}})),
        Request("DELETE", path),
    ]


_FIELDS_OF_DEFINITIONS = (
    "type",
    "items",
    "default",
    "unknown",
    "additionalPrinterColumns",
    "subresources",
    "conversion",
    "x-kubernetes-validations",
    "x-kubernetes-int-or-string",
    "nullable",
    "enum",
    "pattern",
    "minimum",
    "required",
    "shortNames",
    "selectableFields",
)
_SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a+$", "default": "a"}}},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    },
    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
    {"x-kubernetes-int-or-string": True},
    {"type": "string", "format": "date-time", "x-kubernetes-validations": [{"rule": "self != ''"}]},
)


def services(choice: random.Random, names: Names) -> list[Request]:
    """APIServices with something wrong in them; none that leads anywhere."""
    group = f"{names.name}.example"
    spec: dict[str, Any] = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 10,
        "versionPriority": 10,
        "service": {"name": "nobody", "namespace": names.namespace, "port": 443},
        "insecureSkipTLSVerify": True,
    }
    body: dict[str, Any] = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": spec}
    body["metadata"] = {"name": f"v1.{group}"}
    target = choice.choice((spec, spec["service"], body["metadata"], body))
    target[choice.choice((*target, "caBundle", "unknown"))] = choice.choice((*_VALUES, "YWE=", "v1." + group))
    patch = _dump({"spec": {choice.choice((*spec, "caBundle")): choice.choice(_VALUES)}})
    path = f"{SERVICES}/v1.{group}"
    return [
        Request("POST", f"{SERVICES}?fieldValidation={choice.choice(_VALIDATIONS)}&dryRun=All", _dump(body)),
        Request("PATCH", path + "?dryRun=All", patch, choice.choice((MERGE, STRATEGIC, JSON_PATCH))),
        Request("PUT", f"{SERVICES}/v1.apps?dryRun=All", _dump(body)),
        Request("DELETE", path, _dump({"preconditions": {"uid": choice.choice(("", "x"))}})),
    ]


def paths(choice: random.Random, names: Names) -> list[Request]:
    """Paths beside those that exist."""
    groups = (
        "apps",
        "gone.example",
        "",
        "differ.example",
        "extensions",
        "batch",
        "APPS",
        "policy",
        "apiextensions.k8s.io",
    )
    versions = ("v1", "v1beta1", "v9", "", "V1")
    tails = (
        "",
        "/",
        "/deployments",
        f"/namespaces/{names.namespace}/deployments",
        f"/things/{names.name}",
        "/namespaces//things",
        "/watch/things?resourceVersion=x",
        f"/namespaces/{names.namespace}/things/{names.name}/status",
        f"/namespaces/{names.namespace}/things/{names.name}/scale",
        "/things?limit=x",
        "/things?watch=x",
        "//",
        "/../v1",
        "/watch/deployments?timeoutSeconds=x",
        "/customresourcedefinitions/x/status",
        f"/namespaces/{names.namespace}",
    )
    methods = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FOO")
    path = f"/apis/{choice.choice(groups)}/{choice.choice(versions)}{choice.choice(tails)}"
    return [
        Request(choice.choice(methods), choice.choice((path, path.replace("/apis/", "/api/", 1), f"/{names.name}")))
    ]


def objects(choice: random.Random, names: Names) -> list[Request]:
    """Config maps with odd values in odd places, written in every way."""
    value, maps = choice.choice(_VALUES), _maps(names)
    place = choice.choice(("data", "binaryData", "immutable", "metadata", "kind", "apiVersion", "unknown"))
    body = _map(names, data={"a": "b"})
    odd = {**body, place: value}
    meta = choice.choice(
        ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "resourceVersion", "uid")
    )
    marked = {**body, "metadata": {"name": names.name, meta: choice.choice(_VALUES)}}
    validation = f"?fieldValidation={choice.choice((*_VALIDATIONS, 'Wrong'))}"
    return [
        Request("POST", maps + validation, _dump(choice.choice((odd, marked)))),
        Request("POST", maps, _dump(body)),
        Request("PUT", f"{maps}/{names.name}{validation}", _dump(choice.choice((odd, marked)))),
        Request("PATCH", f"{maps}/{names.name}", _dump({place: value}), choice.choice((MERGE, STRATEGIC))),
        Request("PATCH", f"{maps}/{names.name}?fieldManager=m", _dump(odd), APPLY),
        Request("GET", f"{maps}?fieldSelector=metadata.name%3D{names.name}"),
        Request("PATCH", f"{maps}/{names.name}", b'{"metadata":{"finalizers":null}}', MERGE),
        Request("DELETE", f"{maps}/{names.name}"),
    ]


def deletions(choice: random.Random, names: Names) -> list[Request]:
    """Deletions with options and preconditions, right and wrong, of objects of several servers."""
    where = choice.choice((_maps(names), _things(names), f"/api/v1/namespaces/{names.namespace}/pods"))
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}
    kinds: dict[str, dict[str, Any]] = {"configmaps": _map(names), "pods": pod}
    thing = {"apiVersion": "differ.example/v1", "kind": "Thing"}
    body = {**kinds.get(where.rpartition("/")[2], thing), "metadata": {"name": names.name}}
    if choice.random() < 0.4:
        body["metadata"]["finalizers"] = [choice.choice(("a.example/f", "orphan", "foregroundDeletion"))]
    options: dict[str, Any] = {}
    for _ in range(choice.randint(0, 2)):
        field, values = choice.choice(_OPTIONS_OF_DELETIONS)
        options[field] = choice.choice(values)
    queries = (
        "",
        "?propagationPolicy=Orphan",
        "?gracePeriodSeconds=0",
        "?dryRun=All",
        "?dryRun=x",
        "?orphanDependents=1",
        "?propagationPolicy=x",
        "?gracePeriodSeconds=x",
        "?uid=a",
    )
    path = f"{where}/{names.name}"
    return [
        Request("POST", where, _dump(body)),
        Request("DELETE", path + choice.choice(queries), _dump(options)),
        Request("GET", path),
        Request(
            "PUT",
            path,
            _dump({**body, "metadata": {"name": names.name, "resourceVersion": choice.choice(("", "1", "x"))}}),
        ),
        Request("PUT", path, _dump({**body, "metadata": {"name": names.name, "uid": "u"}})),
        Request("PATCH", path, b'{"metadata":{"finalizers":null}}', MERGE),
        Request("DELETE", path + "?gracePeriodSeconds=0"),
    ]


_OPTIONS_OF_DELETIONS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("preconditions", ({}, {"uid": "x"}, {"uid": ""}, {"resourceVersion": "1"}, {"resourceVersion": "x"}, [], "a")),
    ("propagationPolicy", ("Orphan", "Background", "Foreground", "x", "", 1)),
    ("gracePeriodSeconds", (0, 1, -1, "1", None, 1.5)),
    ("orphanDependents", (True, False, None, "x")),
    ("dryRun", (["All"], ["x"], [], "All", None)),
    ("kind", ("DeleteOptions", "Other", "", 1)),
    ("apiVersion", ("v1", "v2", "meta.k8s.io/v1", 1)),
    ("unknown", (1,)),
)


def custom(choice: random.Random, names: Names) -> list[Request]:
    """Custom resources that a schema judges."""
    where = f"/apis/typed.example/v1/namespaces/{names.namespace}/typeds"
    spec: dict[str, Any] = {"text": "aa", "count": 2, "when": "2020-01-01T00:00:00Z", "list": [{"k": "a", "v": 1}]}
    good = {"apiVersion": "typed.example/v1", "kind": "Typed", "metadata": {"name": names.name}, "spec": dict(spec)}
    if choice.random() < 0.1:
        spec["unknown"] = choice.choice(_VALUES)  # alone: at the first such field an apply ends, in any order of fields
    for _ in range(choice.randint(1, 2) if "unknown" not in spec else 0):
        value = choice.choice(
            (*_VALUES, "bb", 11, [{"k": "a"}, {"k": "a"}], [{"v": 1}], ["a", "a"], "5", 2.0, "é" * 20)
        )
        spec[choice.choice((*spec, "any", "set", "map", "choice", "float", "nothing"))] = value
    odd = {**good, "spec": spec}
    path, validation = f"{where}/{names.name}", f"?fieldValidation={choice.choice(_VALIDATIONS)}"
    field = choice.choice(tuple(spec))
    return [
        Request("POST", where + validation, _dump(odd), unordered=True),
        Request("POST", where, _dump(good)),
        Request("PUT", path + validation, _dump(odd), unordered=True),
        Request("PATCH", path + validation, _dump({"spec": {field: spec[field]}}), MERGE, unordered=True),
        Request(
            "PATCH",
            path,
            _dump([{"op": "replace", "path": f"/spec/{field}", "value": spec[field]}]),
            JSON_PATCH,
            unordered=True,
        ),
        Request(
            "PATCH",
            f"{path}?fieldManager=m&force={choice.choice(('true', 'false'))}",
            _dump(odd),
            APPLY,
            unordered=True,
        ),
        Request("GET", path, accept=choice.choice((JSON, TABLE, "application/yaml"))),
        Request("DELETE", path),
    ]


def kinds(choice: random.Random, names: Names) -> list[Request]:
    """Objects of many built-in kinds with one thing changed."""
    sample = choice.choice(SAMPLES)
    where, body = place(sample, names.namespace), json.loads(json.dumps(sample.body))
    good = json.loads(json.dumps(body))
    body["metadata"] = good["metadata"] = {**body.get("metadata", {}), "name": names.name}
    target, key = choice.choice(_places(body))
    if choice.random() < 0.15 and isinstance(target, dict):
        target["unknown"] = 1
    elif choice.random() < 0.15 and isinstance(target, list):
        target.append(target[key])
    elif choice.random() < 0.2:
        del target[key]
    else:
        target[key] = choice.choice(_VALUES)
    path, validation = f"{where}/{names.name}", f"?fieldValidation={choice.choice(_VALIDATIONS)}"
    return [
        Request("POST", where + validation, _dump(body)),
        Request("POST", where, _dump(good)),
        Request("PUT", path + validation, _dump(body)),
        Request(
            "PATCH",
            path,
            _dump({key: value for key, value in body.items() if key not in ("metadata", "kind")}),
            choice.choice((MERGE, STRATEGIC)),
        ),
        Request("PATCH", f"{path}?fieldManager=m", _dump(body), APPLY),
        Request("GET", path, accept=choice.choice((JSON, TABLE, PROTOBUF))),
        Request("DELETE", path + "?gracePeriodSeconds=0"),
    ]


_SETTLED = tuple(sample for sample in SAMPLES if not sample.body["apiVersion"].startswith("flowcontrol."))
"""Those whose status is nobody's but the conversation's: of others it depends on how soon controllers look."""


def fields(choice: random.Random, names: Names) -> list[Request]:
    """Objects of many built-in kinds with fields that samples leave out, made, and come to by an update."""
    sample = choice.choice(_SETTLED)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    odd = json.loads(json.dumps(good))
    for _ in range(choice.choice((1, 1, 1, 2, 3))):
        set_some_field(choice, *choice.choice(structs_in(odd)))
    path = f"{where}/{names.name}"
    return [
        Request("POST", where, _dump(odd), unordered=True),
        Request("GET", path, accept=choice.choice((JSON, TABLE, PROTOBUF))),
        Request("PUT", path, _dump(good), unordered=True),
        Request("DELETE", path + "?gracePeriodSeconds=0"),
        Request("POST", where, _dump(good)),
        Request("PUT", path, _dump(odd), unordered=True),
        Request("PATCH", path, _dump({**odd, "metadata": {}}), choice.choice((MERGE, STRATEGIC)), unordered=True),
        Request("PATCH", f"{path}?fieldManager=m&force=true", _dump(odd), APPLY, unordered=True),
        Request("DELETE", path + "?gracePeriodSeconds=0"),
    ]


def statuses(choice: random.Random, names: Names) -> list[Request]:
    """Statuses of many built-in kinds, written one after the other."""
    sample = choice.choice(_SETTLED)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    path = f"{where}/{names.name}"
    written = [{**good, "status": status_of(choice, good)} for _ in range(3)]
    return [
        Request("POST", where, _dump(good)),
        Request("PUT", f"{path}/status", _dump(written[0]), unordered=True),
        Request(
            "PATCH",
            f"{path}/status",
            _dump({"status": written[1]["status"]}),
            choice.choice((MERGE, STRATEGIC)),
            unordered=True,
        ),
        Request("PATCH", f"{path}/status?fieldManager=m&force=true", _dump(written[2]), APPLY, unordered=True),
        Request("GET", path, accept=choice.choice((JSON, TABLE, PROTOBUF))),
        Request("DELETE", path + "?gracePeriodSeconds=0"),
    ]


def applies(choice: random.Random, names: Names) -> list[Request]:
    """Several managers of one object, who own fields of it together, take them from each other and give them up."""
    sample = choice.choice(_SETTLED)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    path = f"{where}/{names.name}"
    requests = [Request("PATCH", f"{path}?fieldManager=m0", _dump(good), APPLY, unordered=True)]
    for _ in range(choice.randrange(2, 6)):
        body = json.loads(json.dumps(good))
        for _ in range(choice.randrange(3)):
            set_some_field(choice, *choice.choice(structs_in(body)))
        for _ in range(choice.randrange(4)):
            target, key = choice.choice(_places(body))
            if key not in ("apiVersion", "kind", "metadata"):
                del target[key]
        manager = f"fieldManager=m{choice.randrange(3)}{choice.choice(('', '', '&force=true'))}"
        match choice.randrange(6):
            case 0:
                requests.append(Request("PUT", f"{path}?{manager[:15]}", _dump(body), unordered=True))
            case 1:
                kind = choice.choice((MERGE, STRATEGIC))
                requests.append(Request("PATCH", f"{path}?{manager[:15]}", _dump(body), kind, unordered=True))
            case _:
                requests.append(Request("PATCH", f"{path}?{manager}", _dump(body), APPLY, unordered=True))
    return [*requests, Request("GET", path), Request("DELETE", path + "?gracePeriodSeconds=0")]


def shared(choice: random.Random, names: Names) -> list[Request]:
    """Several managers of one custom resource, each with some of its fields."""
    path = f"/apis/typed.example/v1/namespaces/{names.namespace}/typeds/{names.name}"
    values: dict[str, tuple[Any, ...]] = {
        "text": ("a", "b", "ab"),
        "count": (1, 2, 7),
        "when": ("2020-01-01T00:00:00Z",),
        "nothing": (None, "a"),
        "any": (1, "a"),
        "set": (["a"], ["b"], ["a", "b"], []),
        "map": ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, {}),
        "list": ([{"k": "a"}], [{"k": "a", "v": 1}], [{"k": "b"}, {"k": "a", "v": 2}], []),
    }
    requests = []
    for _ in range(choice.randrange(2, 7)):
        some = choice.sample(sorted(values), choice.randrange(1, 6))
        spec = {"text": "a"} | {name: choice.choice(values[name]) for name in some}
        labels = choice.choice(({}, {"labels": {"a": choice.choice("bc")}}, {"finalizers": ["x.example/y"]}))
        body = {
            "apiVersion": "typed.example/v1",
            "kind": "Typed",
            "metadata": {"name": names.name, **labels},
            "spec": spec,
        }
        manager = f"fieldManager=m{choice.randrange(3)}"
        match choice.randrange(6):
            case 0:
                requests.append(Request("PUT", f"{path}?{manager}", _dump(body), unordered=True))
            case 1:
                requests.append(Request("PATCH", f"{path}?{manager}", _dump(body), MERGE, unordered=True))
            case _:
                force = choice.choice(("", "&force=true"))
                requests.append(Request("PATCH", f"{path}?{manager}{force}", _dump(body), APPLY, unordered=True))
    gone = Request("PATCH", path, b'{"metadata":{"finalizers":null}}', MERGE)
    return [*requests, Request("GET", path), gone, Request("DELETE", path)]


def subresources(choice: random.Random, names: Names) -> list[Request]:
    """What is below an object: scale, bindings, evictions, tokens, approvals, finalizers, resources of a pod."""
    name, (resource, below, type_name) = names.name, choice.choice(_BELOW)
    sample = next(each for each in SAMPLES if each.resource == resource)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    path = f"{where}/{name}"
    package, version, kind = type_name.split(".")
    said = []
    for _ in range(2):
        body = some_of(choice, type_name)
        if resource in ("pods", "certificatesigningrequests", "namespaces") and below in _WHOLE:
            body = {**good, "spec": {**good["spec"], **body.get("spec", {})}} if "spec" in good else {**good, **body}
        group = {"core": "v1", "authentication": "authentication.k8s.io/v1", "certificates": "certificates.k8s.io/v1"}
        body["apiVersion"] = choice.choice((group.get(package, f"{package}/{version}"),) * 5 + ("v1", "nobody/v1"))
        body["kind"] = choice.choice((kind,) * 6 + ("Nothing",))
        body["metadata"] = choice.choice(({"name": name},) * 4 + ({}, {"name": "other"}, {"name": name, "uid": "u"}))
        said.append(_dump(body))
    writes = "POST" if below in ("binding", "eviction", "token") else choice.choice(("PUT", "PATCH"))
    kinds = [JSON if writes != "PATCH" else choice.choice((MERGE, STRATEGIC, APPLY)) for _ in said]
    manager = "?fieldManager=m" + choice.choice(("", "&force=true", "&dryRun=All"))
    return [
        Request("POST", where, _dump(good)),
        Request("GET", f"{path}/{below}", accept=choice.choice((JSON, TABLE, PROTOBUF))),
        *(Request(writes, f"{path}/{below}{manager}", body, kind, unordered=True)
          for body, kind in zip(said, kinds, strict=True)),
        Request("GET", path),
        Request("DELETE", path + "?gracePeriodSeconds=0"),
    ]  # fmt: skip


_WHOLE = ("ephemeralcontainers", "resize", "approval", "finalize", "status")
_BELOW = (
    ("deployments", "scale", "autoscaling.v1.Scale"),
    ("statefulsets", "scale", "autoscaling.v1.Scale"),
    ("replicasets", "scale", "autoscaling.v1.Scale"),
    ("replicationcontrollers", "scale", "autoscaling.v1.Scale"),
    ("pods", "binding", "core.v1.Binding"),
    ("pods", "eviction", "policy.v1.Eviction"),
    ("pods", "ephemeralcontainers", "core.v1.Pod"),
    ("pods", "resize", "core.v1.Pod"),
    ("serviceaccounts", "token", "authentication.v1.TokenRequest"),
    ("certificatesigningrequests", "approval", "certificates.v1.CertificateSigningRequest"),
    ("certificatesigningrequests", "status", "certificates.v1.CertificateSigningRequest"),
    ("namespaces", "finalize", "core.v1.Namespace"),
)


def patches(choice: random.Random, names: Names) -> list[Request]:
    """JSON patches, and strategic merge patches with directives."""
    sample = choice.choice([each for each in _SETTLED if each.resource in _PATCHED])
    where, good = place(sample, names.namespace), sound(sample, names.name)
    good["metadata"]["labels"] = {"a": "b", "c/d": "e"}
    path = f"{where}/{names.name}"
    said = []
    for _ in range(3):
        if choice.random() < 0.5:
            operations = [_operation(choice, good) for _ in range(choice.randrange(1, 4))]
            said.append(Request("PATCH", path, _dump(operations), JSON_PATCH, unordered=True))
        else:
            said.append(Request("PATCH", path, _dump(_directed(choice, good)), STRATEGIC, unordered=True))
    return [Request("POST", where, _dump(good)), *said, Request("GET", path),
            Request("DELETE", path + "?gracePeriodSeconds=0")]  # fmt: skip


_PATCHED = ("pods", "services", "deployments", "configmaps", "serviceaccounts", "jobs", "limitranges", "ingresses",
            "persistentvolumes", "networkpolicies", "resourcequotas", "nodes", "clusterroles")  # fmt: skip


def _operation(choice: random.Random, body: dict[str, Any]) -> dict[str, Any]:
    """One operation of a JSON patch."""
    made: dict[str, Any] = {"op": choice.choice(("add", "remove", "replace", "move", "copy", "test", "test", "other"))}
    made["path"] = _pointer(choice, body)
    if made["op"] in ("move", "copy") or choice.random() < 0.05:
        made["from"] = _pointer(choice, body)
    if made["op"] in ("add", "replace", "test") and choice.random() < 0.95:
        made["value"] = choice.choice((*_VALUES[:12], "b", {"a": "b"}, ["a"]))
    return made


def _pointer(choice: random.Random, body: dict[str, Any]) -> str:
    """A path of a JSON patch, mostly to something that is there."""
    value: Any = body
    path = ""
    while isinstance(value, dict | list) and value and choice.random() < 0.85:
        key = choice.choice(list(value)) if isinstance(value, dict) else choice.randrange(len(value))
        path += "/" + str(key).replace("~", "~0").replace("/", "~1")
        value = value[key]
    return path + choice.choice(("",) * 12 + ("/new", "/-", "/0", "/9", "/-1", "/01", "/", "/~", "/a~1b", "/~01"))


def _directed(choice: random.Random, body: Any) -> Any:
    """Part of an object with directives of strategic merge patches in some places."""
    if isinstance(body, list):
        items = [_directed(choice, item) for item in body]
        if items and isinstance(items[0], dict) and choice.random() < 0.2:
            items.append({"$patch": choice.choice(("replace", "delete", "merge", "other"))})
        return items
    if not isinstance(body, dict):
        return choice.choice((body, body, body, None, "x", 7))
    made = {key: _directed(choice, item) for key, item in body.items() if choice.random() < 0.6}
    for name in ("name", "kind", "apiVersion"):
        if name in body and choice.random() < 0.95:
            made[name] = body[name]
    match choice.randrange(14):
        case 0:
            made["$patch"] = choice.choice(("replace", "delete", "merge", "other", 1))
        case 1:
            made["$retainKeys"] = choice.sample(sorted(body), min(2, len(body))) + choice.choice(([], ["other"]))
        case 2:
            lists = [key for key, item in body.items() if isinstance(item, list)]
            if lists:
                made[f"$deleteFromPrimitiveList/{choice.choice(lists)}"] = choice.choice(
                    (["a"], ["ReadWriteOnce"], [1])
                )
        case 3:
            lists = [key for key, item in body.items() if isinstance(item, list)]
            if lists:
                key = choice.choice(lists)
                order = [{k: item[k] for k in list(item)[:1]} if isinstance(item, dict) else item for item in body[key]]
                made[f"$setElementOrder/{key}"] = order + choice.choice(([], [{"name": "z"}], ["z"]))
        case 4:
            made["new"] = choice.choice(_VALUES)
    return made


def rules(choice: random.Random, names: Names) -> list[Request]:
    """Definitions with rules in CEL, right and wrong, dear and cheap."""
    group = f"{names.name}.example"
    field = choice.choice(("self", "self.a", "self.n", "self.l", "self.m", "self.o", "self.o.x", "self.s", "self.i"))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": {"type": "string", **choice.choice(({}, {"maxLength": 10}))},
            "n": {"type": "integer", **choice.choice(({}, {"format": "int64"}))},
            "f": {"type": "number"},
            "b": {"type": "boolean"},
            "l": {"type": "array", "items": {"type": "string"}, **choice.choice(({}, {"maxItems": 10}))},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
            "o": {"type": "object", "properties": {"x": {"type": "string", "nullable": True}}},
            "s": {"type": "string", "format": choice.choice(("date-time", "duration", "byte", "ipv4"))},
            "i": {"x-kubernetes-int-or-string": True},
        },
    }
    rule: dict[str, Any] = {"rule": _expression(choice, field)}
    for name, values in (
        ("message", ("", "m", "a\nb")),
        ("messageExpression", ("'x'", "self.a", "1", "'x' + self", "oldSelf.a")),
        ("reason", ("FieldValueInvalid", "FieldValueForbidden", "Other")),
        ("fieldPath", (".a", ".o.x", ".l[0]", ".nobody", "a", ".m['k']")),
        ("optionalOldSelf", (True, False)),
    ):
        if choice.random() < 0.12:
            rule[name] = choice.choice(values)
    place = choice.choice((schema, schema, schema, schema["properties"]["o"], schema["properties"]["l"]["items"]))
    place["x-kubernetes-validations"] = [rule]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "others", "kind": "Other"},
        "versions": [version],
    }
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"others.{group}"},
        "spec": spec,
    }
    return [Request("POST", f"{DEFINITIONS}?dryRun=All", _dump(body), unordered=True)]


_CALLS = (
    "{0} == {1}", "{0} != {1}", "{0} > {1}", "{0} in {1}", "has({0})", "size({0}) > 1", "{0}.size() < 3",
    "{0}.startsWith('a')", "{0}.matches('{2}')", "{0}.all(x, x == {1})", "{0}.exists(x, {1})", "{0}.map(x, x) == {1}",
    "{0}.filter(x, x > 1).size() == 1", "!{0}", "{0} && {1}", "{0} || {1}", "{0} ? {1} : {0}", "type({0}) == int",
    "{0}[0] == {1}", "{0}['k'] == 1", "{0} + {1} == {0}", "{0} - 1 > {1}", "{0} * 2 == 2", "{0} / 0 == 1",
    "{0} % 2 == 0", "string({0}) == 'a'", "int({0}) == 1", "double({0}) > 1.0", "duration({0}) > duration('1h')",
    "timestamp({0}) < {1}", "{0}.contains({1})", "{0}.split(',').size() == 1", "{0}.isSorted()", "{0}.sum() > 1",
    "{0}.indexOf('a') == 0", "quantity({0}).isGreaterThan(quantity('1'))", "isQuantity({0})",
    "url({0}).getHost() == 'h'", "isIP({0})", "ip({0}).family() == 4", "cidr({0}).containsIP('1.2.3.4')",
    "format.dns1123Label().validate({0}).hasValue()", "{0}.orValue('a') == 'a'", "{0}.?x.hasValue()",
    "oldSelf == {0}", "{0}.nobody == 1", "nobody({0})", "{0} ==", "{0}.lowerAscii() == {1}", "{0}.find('{2}') == 'a'",
    "{0}.all(x, {0}.all(y, x == y))", "sets.contains({0}, {1})", "{0}.getFullYear() == 2020",
    "{0}.replace('a', 'b') == {1}", "math.greatest({0}, {1}) == 1", "{0} is int", "1", "'a'",
    "{0}.exists_one(x, x == {1})", "dyn({0}) == {1}", "[{0}, {1}].size() == 2", "{{'a': {0}}}.a == {1}",
    "optional.of({0})", "{0}.join(',') == 'a'", "{0}.substring(1, 2) == 'a'", "charAt({0})", "{0}.reverse() == {1}",
    "cel.bind(v, {0}, v == {1})", "semver({0}).major() == 1", "{0}.transformList(i, v, v).size() == 0",
    "{0}.charAt(0) == 'a'", "{0}.trim() == ''",
)  # fmt: skip


def _expression(choice: random.Random, field: str) -> str:
    """An expression about a field."""
    others = (
        "1",
        "'a'",
        "true",
        "self.a",
        "self.n",
        "self.l",
        "[1]",
        "['a']",
        "null",
        "1.5",
        "1u",
        "b'a'",
        "self.o",
        "x",
    )
    first, second = (
        choice.choice((field, "self.a", "self.n", "self.l", "self.m", "self.s", "self.b")),
        choice.choice(others),
    )
    pattern = choice.choice(("a+", "[", "(", "^a$", "\\\\d", "a{{2000}}"))
    made = choice.choice(_CALLS).format(first, second, pattern)
    return made if choice.random() < 0.8 else f"{made} {choice.choice(('&&', '||', '=='))} {_expression(choice, field)}"


def rights(choice: random.Random, names: Names) -> list[Request]:
    """Roles and bindings that users make who may not do everything, and what they may do then."""
    user, name, where = f"u-{names.name}", names.name, f"/apis/{RBAC}/v1/namespaces/{names.namespace}"

    def some_rules() -> list[dict[str, Any]]:
        return [some_of(choice, "rbac.v1.PolicyRule") if choice.random() < 0.15 else {
            "apiGroups": choice.choice(([""], ["apps"], ["*"], [RBAC], [""])),
            "resources": choice.choice((["pods"], ["configmaps"], ["*"], ["pods", "pods/log"], ["pods/*"], ["roles"],
                                        ["rolebindings"])),
            "verbs": choice.choice((["get"], ["get", "list"], ["*"], ["create"], ["bind"], ["escalate"], ["update"])),
            **choice.choice(({}, {}, {"resourceNames": [name]})),
        } for _ in range(choice.randrange(1, 3))]  # fmt: skip

    def role(kind: str, its_name: str) -> dict[str, Any]:
        return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": its_name}, "rules": some_rules()}

    def binding(its_name: str, subject: str, of: str) -> dict[str, Any]:
        subjects = [{"kind": "User", "apiGroup": RBAC, "name": subject}]
        ref = {"apiGroup": RBAC, "kind": "Role", "name": of}
        metadata = {"name": its_name}
        return {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": metadata, "subjects": subjects,
                "roleRef": ref}  # fmt: skip

    given = role("Role", name)
    given["rules"].append({"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["create", "get"]})
    path = f"/api/v1/namespaces/{names.namespace}/{choice.choice(('pods', 'configmaps', 'secrets'))}/{name}"
    attributes = {"namespace": names.namespace, "verb": choice.choice(("get", "list", "create", "*")),
                  "resource": choice.choice(("pods", "configmaps", "*"))}  # fmt: skip
    review = {"spec": {"resourceAttributes": attributes}}
    again = role("Role", name)
    return [
        Request("POST", f"{where}/roles", _dump(given)),
        Request("POST", f"{where}/rolebindings", _dump(binding(name, user, name))),
        Request("GET", f"{where}/roles/{name}", user=user, awaits='"kind":"Role"'),
        Request("GET", path, user=user),
        Request("POST", f"{where}/roles", _dump(role("Role", f"{name}-a")), user=user),
        Request("POST", f"{where}/rolebindings", _dump(binding(f"{name}-a", "other", f"{name}-a")), user=user),
        Request("POST", f"{where}/rolebindings", _dump(binding(f"{name}-b", "other", name)), user=user),
        Request("PUT", f"{where}/roles/{name}", _dump(again), user=user),
        Request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", _dump(review), user=user),
        Request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                _dump({"spec": {"namespace": names.namespace}}), user=user, unordered=True),
        *(Request("DELETE", f"{where}/{kind}/{name}{end}")
          for kind in ("rolebindings", "roles") for end in ("", "-a", "-b")),
    ]  # fmt: skip


def limits(choice: random.Random, names: Names) -> list[Request]:
    """Limit ranges, and pods and claims beside them, in a namespace of their own."""
    namespace = f"n-{names.name}"
    where = f"/api/v1/namespaces/{namespace}"

    def amounts(*resources: str) -> dict[str, str]:
        some = choice.sample(resources, choice.randrange(len(resources) + 1))
        return {name: choice.choice(_AMOUNTS[name]) for name in some}

    def limit() -> dict[str, Any]:
        kind = choice.choice(("Container", "Container", "Pod", "PersistentVolumeClaim", "a.example/b", "Other"))
        kinds = ("storage",) if kind.startswith("Persistent") else ("cpu", "memory", "example.com/gpu")
        parts = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        return {"type": kind} | {part: amounts(*kinds) for part in parts if choice.random() < 0.35}

    def pod(name: str) -> dict[str, Any]:
        containers = [
            {"name": f"c{number}", "image": "i",
             "resources": {part: amounts("cpu", "memory", "example.com/gpu") for part in ("requests", "limits")}}
            for number in range(choice.randrange(1, 3))
        ]  # fmt: skip
        spec: dict[str, Any] = {choice.choice(("containers", "containers", "initContainers")): containers}
        spec.setdefault("containers", [{"name": "main", "image": "i"}])
        if choice.random() < 0.2:
            spec["resources"] = {"requests": amounts("cpu", "memory"), "limits": amounts("cpu", "memory")}
        return {"metadata": {"name": name}, "spec": spec}

    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": amounts("storage")}}
    ranges = {"metadata": {"name": "l"}, "spec": {"limits": [limit() for _ in range(choice.randrange(1, 3))]}}
    return [
        Request("POST", "/api/v1/namespaces", _dump({"metadata": {"name": namespace}})),
        Request("POST", f"{where}/limitranges", _dump(ranges), unordered=True),
        *(Request("POST", f"{where}/pods", _dump(pod(f"p{number}")), unordered=True) for number in range(3)),
        Request("POST", f"{where}/persistentvolumeclaims", _dump({"metadata": {"name": "c"}, "spec": claim}),
                unordered=True),
    ]  # fmt: skip


_AMOUNTS = {
    "cpu": ("100m", "1", "2", "0", "1500m"),
    "memory": ("1Gi", "64Mi", "1", "0"),
    "storage": ("1Gi", "10Gi", "0"),
    "example.com/gpu": ("1", "2", "1500m"),
}


def watches(choice: random.Random, names: Names) -> list[Request]:
    """Watches from some version on, in all forms, with odd parameters; each takes its second."""
    sample = choice.choice(_SETTLED)
    where, good = place(sample, names.namespace), sound(sample, names.name)
    good["metadata"]["labels"] = {"conversation": names.name}
    selector = choice.choice((f"fieldSelector=metadata.name={names.name}", f"labelSelector=conversation={names.name}"))
    query = [selector, "watch=1", "timeoutSeconds=1"]
    for name, values in (
        ("resourceVersion", ("0", "", "x", "-1", "1.0")),
        ("resourceVersionMatch", ("NotOlderThan", "Exact", "Other")),
        ("sendInitialEvents", ("true", "false", "x")),
        ("allowWatchBookmarks", ("true", "1", "x")),
        ("limit", ("1", "-1", "x")),
        ("continue", ("x",)),
        ("pretty", ("true",)),
        ("watch", ("0", "x")),
    ):
        if choice.random() < (0.6 if name == "resourceVersion" else 0.2):
            query.append(f"{name}={choice.choice(values)}")
    accept = choice.choice((JSON, JSON, TABLE, METADATA, METADATA.replace("List", ""), "application/yaml",
                            f"{JSON};stream=watch", "text/plain"))  # fmt: skip
    path = choice.choice((where, f"{where}/{names.name}"))
    return [
        Request("POST", where, _dump(good)),
        Request("GET", f"{path}?{'&'.join(query)}", accept=accept),
        Request("DELETE", f"{where}/{names.name}?gracePeriodSeconds=0"),
    ]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with each of its keys."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    found = [(value, key) for key in keys if key != "name"]
    return found + [place for key in keys for place in _places(value[key])]


def schedules(choice: random.Random, names: Names) -> list[Request]:
    """Cron jobs with schedules and time zones, right and wrong."""
    fields = (
        "*",
        "*/5",
        "0",
        "60",
        "1-5",
        "5-1",
        "1,2",
        "a",
        "",
        "?",
        "L",
        "*/0",
        "1-",
        "JAN",
        "MON",
        "7",
        "-1",
        "1/2",
        "MON-FRI",
    )
    schedule = " ".join(
        choice.choice(fields) if choice.random() < 0.4 else "*" for _ in range(choice.choice((5, 5, 5, 4, 6)))
    )
    schedule = choice.choice(
        (schedule, schedule, "@daily", "@every 1h", "@x", "TZ=UTC " + schedule, "CRON_TZ=x " + schedule)
    )
    zone = choice.choice(
        (
            None,
            "",
            "UTC",
            "Etc/UTC",
            "Europe/Berlin",
            "europe/berlin",
            "Local",
            "local",
            "x",
            "../x",
            "Europe",
            "GMT+1",
            "EST",
            "Etc/GMT+1",
            "America/Argentina/Buenos_Aires",
            "US/Pacific",
            "posix/UTC",
            "right/UTC",
            "Asia/Calcutta",
            " UTC",
            "/UTC",
            "UTC/",
            "Etc//UTC",
            "é",
            "a" * 200,
            "zone.tab",
            "Factory",
            "posixrules",
        )
    )
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
    spec = {"schedule": schedule, "jobTemplate": template, **({} if zone is None else {"timeZone": zone})}
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": names.name}, "spec": spec}
    where = f"/apis/batch/v1/namespaces/{names.namespace}/cronjobs"
    return [
        Request("POST", where, _dump(body)),
        Request(
            "PATCH", f"{where}/{names.name}", _dump({"spec": {"schedule": choice.choice(fields) + " * * * *"}}), MERGE
        ),
        Request("PATCH", f"{where}/{names.name}", _dump({"spec": {"timeZone": zone}}), STRATEGIC),
        Request("GET", f"{where}/{names.name}", accept=TABLE),
        Request("DELETE", f"{where}/{names.name}"),
    ]


def tables(choice: random.Random, names: Names) -> list[Request]:
    """Lists of every kind in every form, empty ones mostly."""
    sample = choice.choice([each for each in SAMPLES if each.resource != "flowschemas"])  # a controller writes to these
    where = place(sample, names.namespace)
    body = {**sample.body, "metadata": {**sample.body.get("metadata", {}), "name": names.name}}
    forms = (
        TABLE,
        TABLE.replace("v=v1", "v=v1beta1"),
        METADATA,
        METADATA.replace("List", ""),
        JSON,
        PROTOBUF,
        "application/yaml",
        f"{TABLE},{JSON}",
        TABLE.replace("json", "yaml"),
    )
    included = choice.choice(
        ("", "&includeObject=None", "&includeObject=Object", "&includeObject=Metadata", "&includeObject=x")
    )
    query = f"?fieldSelector=metadata.name%3D{names.name}{included}"
    return [
        Request("GET", where + query, accept=choice.choice(forms)),
        Request("POST", where + choice.choice(("", "?dryRun=All")), _dump(body), accept=choice.choice(forms)),
        Request("GET", where + query, accept=choice.choice(forms)),
        Request("GET", f"{where}/{names.name}?{included}", accept=choice.choice(forms)),
        Request("DELETE", f"{where}/{names.name}?gracePeriodSeconds=0", accept=choice.choice(forms)),
    ]


def lists(choice: random.Random, names: Names) -> list[Request]:
    """Options and selectors of lists, right and wrong."""
    where = choice.choice((_maps(names), _things(names), f"/api/v1/namespaces/{names.namespace}/pods"))
    parameters = [
        f"{field}={quote(choice.choice(values), safe='')}"
        for field, values in choice.sample(_OPTIONS_OF_LISTS, choice.randint(1, 3))
    ]
    return [
        Request("GET", f"{where}?{'&'.join(parameters)}", accept=choice.choice((JSON, TABLE))),
        Request("DELETE", f"{_maps(names)}?dryRun=All&{'&'.join(parameters)}"),
    ]


_OPTIONS_OF_LISTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("limit", ("0", "1", "-1", "x", "", "99999999999999999999")),
    ("continue", ("", "x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIifQ", "%00", "a" * 200)),
    ("resourceVersion", ("", "0", "x", "-1", "00", "99999999999999999999")),  # no old ones: they go at other times
    ("resourceVersionMatch", ("", "Exact", "NotOlderThan", "x")),
    (
        "labelSelector",
        (
            "",
            "a",
            "!a",
            "a=b",
            "a==b",
            "a!=b",
            "a in (b)",
            "a in ()",
            "a notin (b,c)",
            "a in b",
            "a>1",
            "a<x",
            "=",
            ",",
            "a,",
            "é",
            "a=é",
            "a/b/c=d",
            "A.b/c",
            "-a",
            "a=-",
            "a b",
            "a in (b",
            "a gt 1",
            "(",
            "x" * 64,
            "a=" + "x" * 64,
        ),
    ),
    (
        "fieldSelector",
        (
            "",
            "metadata.name=a",
            "metadata.name!=a",
            "metadata.namespace=b",
            "spec.nodeName=x",
            "status.phase!=x",
            "a",
            "a=b",
            "metadata.name",
            "metadata.name==a,",
            "metadata.name=a\\,b",
            "metadata.name=a\\",
            "=a",
            "x.y=z",
        ),
    ),
    ("sendInitialEvents", ("true", "false", "x", "")),
    ("allowWatchBookmarks", ("true", "x")),
    ("timeoutSeconds", ("1", "x", "-1")),
    ("pretty", ("1", "x")),
)


def protobuf(choice: random.Random, names: Names) -> list[Request]:
    """Messages that are cut off, or have other fields than they should."""
    name = names.name.encode()
    container = _message((1, b"c"), (2, b"i"), (6, _message((1, b"p"), (3, 80))))
    meta = _message((1, name), (11, _message((1, b"l"), (2, b"v"))))
    shapes = (
        ("v1", "ConfigMap", _maps(names), [(1, meta), (2, _message((1, b"k"), (2, b"v"))), (4, 1)]),
        (
            "v1",
            "Pod",
            f"/api/v1/namespaces/{names.namespace}/pods",
            [(1, meta), (2, _message((2, container), (4, 30)))],
        ),
        (
            "batch/v1",
            "CronJob",
            f"/apis/batch/v1/namespaces/{names.namespace}/cronjobs",
            [(1, meta), (2, _message((1, b"x")))],
        ),
    )
    version, kind, where, fields = choice.choice(shapes)
    raw = _damaged(choice, _message(*fields))
    head = _message(
        (1, choice.choice((version.encode(), version.encode(), b"", b"x/y/z"))),
        (2, choice.choice((kind.encode(), kind.encode(), b"", b"X"))),
    )
    body = b"k8s\0" + _message((1, head), (2, raw))
    if choice.random() < 0.15:
        body = _damaged(choice, body)
    return [
        Request("POST", where, body, PROTOBUF, choice.choice((JSON, PROTOBUF))),
        Request("PUT", f"{where}/{names.name}", body, PROTOBUF),
        Request("DELETE", f"{where}/{names.name}?gracePeriodSeconds=0", choice.choice((None, body))),
        Request("DELETE", f"{where}/{names.name}?gracePeriodSeconds=0"),
    ]


def _message(*fields: tuple[int, bytes | int]) -> bytes:
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += _number(number << 3) + _number(value)
        else:
            found += _number(number << 3 | 2) + _number(len(value)) + value
    return found


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def _damaged(choice: random.Random, data: bytes) -> bytes:
    """The message with a byte changed, cut off, with a strange field more, or as it is.

    Strings stay text: Pilothouse refuses others, which kube-apiserver stores.
    """
    at = choice.randrange(len(data))
    strange = (99 << 3, 99 << 3 | 1, 99 << 3 | 3, 99 << 3 | 4, 99 << 3 | 5, 1 << 3, 2 << 3 | 5, 0)
    return choice.choice(
        (
            data,
            data[:at],
            data[:at] + bytes((choice.randrange(128),)) + data[at + 1 :],
            data + _number(choice.choice(strange)) + bytes(choice.randrange(10)),
        )
    )


AREAS: dict[str, Maker] = {
    "definitions": definitions,
    "services": services,
    "media": media,
    "numbers": numbers,
    "objects": objects,
    "deletions": deletions,
    "custom": custom,
    "kinds": kinds,
    "fields": fields,
    "statuses": statuses,
    "applies": applies,
    "shared": shared,
    "subresources": subresources,
    "patches": patches,
    "rules": rules,
    "rights": rights,
    "limits": limits,
    "watches": watches,
    "schedules": schedules,
    "tables": tables,
    "lists": lists,
    "protobuf": protobuf,
    "paths": paths,
    "json": json_texts,
    "yaml": yaml_texts,
    **ADMISSION_AREAS,
    **VERB_AREAS,
    "pods": pods,
    "versions": versions,
    "conversions": conversions,
    "devices": devices,
    "kubectl": kubectl,
    "helm": helm,
    "certificates": certificates,
    "reconciles": reconciles,
    "informers": informers,
    "elections": elections,
    "columns": columns,
    "selections": selections,
    "quotes": quotes,
    "security": security,
    "reshaping": reshaping,
    "workloads": workloads,
    "scarcity": scarcity,
    "schemas": schemas,
    "ratchets": ratchets,
    "documents": documents,
    "expressions": expressions,
    "judgements": judgements,
    "rewritings": rewritings,
    "storage": storage,
    "flows": flows,
}
