"""Conversations about a custom resource of three versions that differ in what they show, prune, fill in and own."""

from __future__ import annotations

import json
import random
from typing import Any

from differential_answers import JSON, Request

GROUP, PLURAL, KIND = "multi.example", "multis", "Multi"
_MERGE, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
_APPLY, _TABLE = "application/apply-patch+yaml", "application/json;as=Table;g=meta.k8s.io;v=v1"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}


def _of(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, **more}


_KEYED = {
    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
    "items": _of({"k": {**_TEXT, "default": "d"}, "v": _NUMBER}, required=["k"]),
}  # fmt: skip
_SET = {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT}
_STATUS = _of({"ready": _NUMBER, "label": _TEXT, "seen": _SET})
_SCALE = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.ready", "labelSelectorPath": ".status.label"}


def _version(name: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": _of({"spec": spec, "status": _STATUS})}
    return {"name": name, "served": True, "storage": name == "v1", "schema": schema, **more}


DEFINITION = {
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "kind": KIND, "categories": ["all"]},
        "versions": [
            _version(
                "v1",
                _of({"a": {**_TEXT, "default": "x"}, "n": _NUMBER, "keyed": _KEYED, "set": _SET, "old": _TEXT}),
                subresources={"status": {}, "scale": _SCALE},
                selectableFields=[{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.n"}],
                additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
            ),
            _version(
                "v1beta1",
                _of({"a": _TEXT, "old": {**_TEXT, "default": "o", "maxLength": 5}, "keyed": _KEYED}),
                subresources={"status": {}},
                selectableFields=[{"jsonPath": ".spec.old"}],
                deprecated=True,
                deprecationWarning="use another",
            ),
            _version(
                "v2",
                _of(
                    {"a": {**_TEXT, "enum": ["x", "y"]}, "n": {**_NUMBER, "minimum": 5}, "set": _SET},
                    **{
                        "x-kubernetes-preserve-unknown-fields": True,
                        "x-kubernetes-validations": [{"rule": "!has(self.n) || self.n != 7", "message": "not seven"}],
                    },
                ),
                additionalPrinterColumns=[{"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1}],
            ),
        ],
    },
}
_VERSIONS = ("v1", "v1beta1", "v2")


def versions(choice: random.Random, names: Any) -> list[Request]:
    """One object through several versions, by all kinds of writes and managers."""
    name = names.name
    said = []
    for _ in range(choice.randrange(4, 8)):
        at = choice.choice(_VERSIONS)
        where = f"/apis/{GROUP}/{at}/namespaces/{names.namespace}/{PLURAL}"
        said.append(_write(choice, where, at, name))
        said.append(_read(choice, where, name))
    end = f"/apis/{GROUP}/v1/namespaces/{names.namespace}/{PLURAL}/{name}"
    return [*said, Request("GET", end), Request("DELETE", end)]


def _spec(choice: random.Random) -> dict[str, Any]:
    given: dict[str, Any] = {
        "a": choice.choice(("x", "y", "z", "", None)),
        "n": choice.choice((1, 5, 7, 9, "1", None)),
        "old": choice.choice(("o", "p", "too long", None)),
        "set": choice.choice((["a"], ["b", "a"], ["a", "a"], [])),
        "keyed": choice.choice(
            ([{"k": "a", "v": 1}], [{"v": 2}], [{"k": "a"}, {"k": "b", "v": 2}], [{"k": "a"}, {"k": "a"}])
        ),
        "free": choice.choice(({"q": 1}, "r", None)),
    }
    return {key: given[key] for key in choice.sample(sorted(given), choice.randrange(4))}


def _write(choice: random.Random, where: str, at: str, name: str) -> Request:
    body: dict[str, Any] = {
        "apiVersion": f"{GROUP}/{at}",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": _spec(choice),
    }
    if choice.random() < 0.3:
        body["status"] = {"ready": choice.choice((1, 2, "1")), "label": choice.choice(("a=b", "a in", ""))}
    below = choice.choice(("", "", "", "/status"))
    manager = f"fieldManager={choice.choice('mno')}"
    query = choice.choice((f"?{manager}", f"?{manager}&fieldValidation=Strict", f"?{manager}&dryRun=All"))
    way = choice.randrange(7)
    if way <= 1:
        return Request("POST", where + query, json.dumps(body).encode(), unordered=True)
    if way == 2:
        body["metadata"] |= choice.choice(({}, {}, {"resourceVersion": "1"}, {"resourceVersion": ""}))
        return Request("PUT", f"{where}/{name}{below}{query}", json.dumps(body).encode(), unordered=True)
    if way == 3:
        patch = {key: body[key] for key in ("spec", "status") if key in body}
        return Request("PATCH", f"{where}/{name}{below}{query}", json.dumps(patch).encode(), _MERGE, unordered=True)
    if way == 4:
        operations = [
            {"op": choice.choice(("add", "replace", "remove", "test")), "path": f"/spec/{key}", "value": value}
            for key, value in body["spec"].items()
        ]
        return Request("PATCH", f"{where}/{name}{query}", json.dumps(operations).encode(), _JSON_PATCH)
    if way == 5 and at == "v1":
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name},
                 "spec": {"replicas": choice.choice((0, 3, 7, -1))}}  # fmt: skip
        return Request("PUT", f"{where}/{name}/scale{query}", json.dumps(scale).encode())
    # Of several faults any may be the first to be told: one field at a time.
    body["spec"] = dict(list(body["spec"].items())[:1])
    body.pop("status", None)
    forced = query + choice.choice(("", "&force=true"))
    return Request("PATCH", f"{where}/{name}{below}{forced}", json.dumps(body).encode(), _APPLY)


def _read(choice: random.Random, where: str, name: str) -> Request:
    accept = choice.choice((JSON, JSON, _TABLE, _METADATA))
    selector = choice.choice(
        (f"metadata.name={name}", "spec.a=x", "spec.n=5,metadata.name=" + name, "spec.old=o", "spec.b=c")
    )
    own = f"&fieldSelector=metadata.name={name}"
    if choice.random() < 0.5:
        return Request("GET", f"{where}/{name}{choice.choice(('', '', '/status', '/scale'))}", accept=accept)
    if "metadata.name" not in selector:
        selector += f",metadata.name={name}"
    if choice.random() < 0.9:
        return Request("GET", f"{where}?fieldSelector={selector}", accept=accept)
    return Request("GET", f"{where}?watch=1&timeoutSeconds=1&resourceVersion=0{own}", accept=accept)
