"""Conversations about a custom resource whose versions a webhook converts, by field selectors of each version too.

What the webhook does wrong, an annotation says that it takes away; and it does so on the way to the stored version
alone. What is stored can always be read and converted back: an object that nobody can convert would hold up the caches
of both servers for all others, and kube-apiserver converts what it is about to change once more.
"""

from __future__ import annotations

import json
import random
from typing import Any, ClassVar

from differential_answers import JSON, Request
from differential_webhooks import Webhook

GROUP, PLURAL, KIND, STORED = "turned.example", "turneds", "Turned", "v1"
_MODE = "mode"
_MERGE, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
_APPLY, _TABLE = "application/apply-patch+yaml", "application/json;as=Table;g=meta.k8s.io;v=v1"
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_NAMES = {"v1": "a", "v2": "b", "v3": "c"}
"""What each version calls the same field."""
_MODES = ("ok",) * 12 + (
    "fail", "silent", "name", "label", "uid", "kind", "version", "none", "two", "other", "empty", "error", "garbage",
    "null", "text", "bare", "odd", "unlabelled", "unfinished", "unknown", "long",
)  # fmt: skip


def _version(name: str, fields: dict[str, Any], selectable: tuple[str, ...]) -> dict[str, Any]:
    spec = {"type": "object", "properties": fields}
    schema = {
        "type": "object",
        "properties": {"spec": spec, "status": {"type": "object", "properties": {"n": _NUMBER}}},
    }
    return {
        "name": name, "served": True, "storage": name == STORED, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}}, "selectableFields": [{"jsonPath": f".spec.{each}"} for each in selectable],
        "additionalPrinterColumns": [{"name": "It", "type": "string", "jsonPath": f".spec.{_NAMES[name]}"}],
    }  # fmt: skip


def definition(port: int, authority: str) -> dict[str, Any]:
    """What is converted by a webhook on that port."""
    client = {"url": f"https://127.0.0.1:{port}/convert", "caBundle": authority}
    return {
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "kind": KIND},
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
            "versions": [
                _version("v1", {"a": {**_TEXT, "default": "x"}, "n": _NUMBER}, ("a", "n")),
                _version("v2", {"b": {**_TEXT, "maxLength": 3}, "n": {**_NUMBER, "default": 2}}, ("b",)),
                _version("v3", {"c": _TEXT, "n": _NUMBER, "more": {**_TEXT, "default": "m"}}, ("c", "more")),
            ],
        },
    }


class Converter(Webhook):
    """Gives the field its name in the version that is wanted."""

    _RESULTS: ClassVar[dict[str, Any]] = {
        "fail": {"status": "Failure", "message": "it is <no> use"},
        "silent": {"status": "Failure"},
        "empty": {},
    }

    def take(self, body: bytes) -> tuple[int, bytes]:
        """Convert what is asked for."""
        review = json.loads(body)
        request = review["request"]
        objects, wanted = request["objects"], request["desiredAPIVersion"]
        modes = [(each["metadata"].get("annotations") or {}).get(_MODE, "ok") for each in objects]
        mode = next((each for each in modes if each != "ok"), "ok") if wanted.endswith(f"/{STORED}") else "ok"
        if mode == "error":
            return 500, b"no"
        if mode == "garbage":
            return 200, b"{"
        converted: list[Any] = [_spoil(mode, _convert(each, wanted)) for each in objects]
        converted = {"none": [], "two": converted * 2, "null": [None], "text": ["a"]}.get(mode, converted)
        uid = "other" if mode == "other" else request["uid"]
        result = self._RESULTS.get(mode, {"status": "Success"})
        response = {"uid": uid, "result": result, "convertedObjects": converted}
        head = {key: review[key] for key in ("apiVersion", "kind")}
        return 200, json.dumps({**head, "response": response}).encode()


def _convert(obj: dict[str, Any], wanted: str) -> dict[str, Any]:
    """The same object in another version."""
    given = _NAMES[obj["apiVersion"].rpartition("/")[2]]
    made = {**obj, "apiVersion": wanted, "metadata": dict(obj["metadata"])}
    annotations = made["metadata"].pop("annotations", {})
    if annotations := {key: value for key, value in annotations.items() if key != _MODE}:
        made["metadata"]["annotations"] = annotations
    if isinstance(spec := obj.get("spec"), dict):
        fields = dict(spec)
        if given in fields:
            fields[_NAMES[wanted.rpartition("/")[2]]] = fields.pop(given)
        made["spec"] = fields
    return made


def _spoil(mode: str, obj: dict[str, Any]) -> dict[str, Any]:
    metadata = dict(obj["metadata"])
    match mode:
        case "name":
            metadata["name"] = "other"
        case "uid":
            metadata["uid"] = "other"
        case "label":
            metadata["labels"] = {**(metadata.get("labels") or {}), "converted": "yes"}
        case "unlabelled":
            metadata.pop("labels", None)
        case "unfinished":
            metadata["finalizers"] = ["a.example/b"]
        case "odd":
            metadata["labels"] = {"a": 1}
        case "kind":
            return {**obj, "kind": "Other"}
        case "version":
            return {**obj, "apiVersion": f"{GROUP}/v9"}
        case "bare":
            return {key: value for key, value in obj.items() if key != "metadata"}
        case "unknown":
            return {**obj, "unknown": 1}
        case "long":
            return {**obj, "spec": {**obj.get("spec", {}), "a": "x" * 2000}}
    return {**obj, "metadata": metadata}


def conversions(choice: random.Random, names: Any) -> list[Request]:
    """One object through versions that a webhook converts."""
    said = []
    for _ in range(choice.randrange(3, 8)):
        at = choice.choice(tuple(_NAMES))
        where = f"/apis/{GROUP}/{at}/namespaces/{names.namespace}/{PLURAL}"
        said.append(_write(choice, where, at, names.name))
        said.append(_read(choice, where, names.name))
    stored = f"/apis/{GROUP}/{STORED}/namespaces/{names.namespace}/{PLURAL}/{names.name}"
    gone = json.dumps({"metadata": {"finalizers": None, "annotations": None}}).encode()
    return [*said, Request("PATCH", stored, gone, _MERGE), Request("DELETE", stored)]


def _object(choice: random.Random, at: str, name: str) -> dict[str, Any]:
    fields: dict[str, tuple[Any, ...]] = {
        _NAMES[at]: ("x", "y", "long", "", None, 1), "n": (1, 2, None, "1"), "more": ("m", "o"), "unknown": (1,),
    }  # fmt: skip
    spec = {key: choice.choice(fields[key]) for key in choice.sample(sorted(fields), choice.choice((1, 1, 2, 2, 3)))}
    metadata: dict[str, Any] = {"name": name}
    if (mode := choice.choice(_MODES)) != "ok" and at != STORED:
        metadata["annotations"] = {_MODE: mode}
    if choice.random() < 0.3:
        metadata["labels"] = {"l": choice.choice("ab")}
    if choice.random() < 0.1:
        metadata["finalizers"] = ["x.example/y"]
    body = {"apiVersion": f"{GROUP}/{at}", "kind": KIND, "metadata": metadata, "spec": spec}
    return body | choice.choice(({}, {}, {"status": {"n": choice.choice((1, "1"))}}))


def _write(choice: random.Random, where: str, at: str, name: str) -> Request:
    body = _object(choice, at, name)
    below = choice.choice(("", "", "", "/status"))
    manager = f"fieldManager={choice.choice('mno')}"
    query = choice.choice((f"?{manager}", f"?{manager}&fieldValidation=Strict", f"?{manager}&dryRun=All"))
    match choice.randrange(7):
        case 0 | 1:
            return Request("POST", where + query, json.dumps(body).encode(), unordered=True)
        case 2:
            return Request("PUT", f"{where}/{name}{below}{query}", json.dumps(body).encode(), unordered=True)
        case 3:
            patch = {key: body[key] for key in ("metadata", "spec", "status") if key in body}
            return Request("PATCH", f"{where}/{name}{below}{query}", json.dumps(patch).encode(), _MERGE, unordered=True)
        case 4:
            operations = [
                {"op": choice.choice(("add", "replace", "remove", "test")), "path": f"/spec/{key}", "value": value}
                for key, value in body["spec"].items()
            ]
            return Request("PATCH", f"{where}/{name}{query}", json.dumps(operations).encode(), _JSON_PATCH)
        case 5:
            path = f"{where}/{name}" + choice.choice(("", "?dryRun=All", "?propagationPolicy=Foreground"))
            return Request("DELETE", path)
    # Of several faults any may be the first to be told: one field at a time.
    body["spec"] = dict(list(body["spec"].items())[:1])
    body.pop("status", None)
    forced = query + choice.choice(("", "&force=true"))
    return Request("PATCH", f"{where}/{name}{below}{forced}", json.dumps(body).encode(), _APPLY)


def _read(choice: random.Random, where: str, name: str) -> Request:
    accept = choice.choice((JSON, JSON, _TABLE, "application/yaml"))
    if choice.random() < 0.4:
        return Request("GET", f"{where}/{name}{choice.choice(('', '', '/status'))}", accept=accept)
    selector = choice.choice(
        ("spec.a=x", "spec.b=x", "spec.c=x", "spec.n=2", "spec.more=m", "spec.b!=x", "spec.c=", "metadata.name!=z")
    )
    query = f"fieldSelector={selector},metadata.name={name}{choice.choice(('', '&limit=1', '&resourceVersion=0'))}"
    if choice.random() < 0.15:
        return Request("DELETE", f"{where}?{query}&dryRun=All")
    return Request("GET", f"{where}?{query}", accept=accept)
