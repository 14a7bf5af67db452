"""Changes to recorded requests: what else a client could have said at that place of a conversation.

Values come from the recordings themselves, by the name of their field, from the catalogue of types, and from a list of
odd ones; parameters, media types and users from what recordings have and from what they leave out. The same state of
the random generator gives the same changes.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from differential_fields import set_some_field, structs_in

Step = dict[str, Any]
_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.5, "", "a", "A b", "1", [], {}, [1], ["a"], ["a", "a"], {"a": "b"}, "x" * 64,
    "x" * 254, "é", 2**31, 2**63, "$(A)", "${ns}", "*", "10", "1Gi", "100%", "kubernetes.io/x", "a.b/c", "/", "..",
)  # fmt: skip
_PARAMETERS = (
    "dryRun=All", "dryRun=All", "dryRun=None", "dryRun=", "dryRun=All&dryRun=All", "fieldValidation=Strict",
    "fieldValidation=Warn", "fieldValidation=Ignore", "fieldValidation=strict", "fieldManager=m", "fieldManager=a%20b",
    "fieldManager=" + "m" * 129, "force=true", "force=1", "force=false", "force=x", "pretty=true", "pretty=false",
    "pretty=x", "propagationPolicy=Orphan", "propagationPolicy=Foreground", "propagationPolicy=Background",
    "propagationPolicy=x", "gracePeriodSeconds=0", "gracePeriodSeconds=-1", "gracePeriodSeconds=5",
    "orphanDependents=true", "orphanDependents=false", "limit=1", "limit=0", "limit=-1", "limit=2", "limit=x",
    "continue=x", "resourceVersion=0", "resourceVersion=1", "resourceVersion=x", "resourceVersion=",
    "resourceVersion=99999999", "resourceVersion=0&resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", "resourceVersionMatch=x",
    "labelSelector=golden%3D${uniq}", "labelSelector=a", "labelSelector=!a", "labelSelector=a%20in%20(b,c)",
    "labelSelector=,", "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name!%3Da",
    "fieldSelector=metadata.namespace%3D${ns}", "fieldSelector=spec.x%3D1", "fieldSelector=status.phase%3DPending",
    "sendInitialEvents=true", "timeoutSeconds=1", "allowWatchBookmarks=true", "includeObject=None",
    "includeObject=Object", "includeObject=x", "unknown=1", "ignoreStoreReadErrorWithClusterBreakingPotential=true",
    "shardSelector=x", "watch=0", "export=true", "exact=true",
)  # fmt: skip
_ACCEPTED = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "*/*",
    "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "text/plain", "application/*", "",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/yaml;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
    "application/json;as=Table;g=meta.k8s.io;v=v1beta1", "application/json;stream=watch", "application/json;q=0.5",
    "application/vnd.kubernetes.protobuf,application/json", "application/xml, application/json",
    "application/json;profile=x",
)  # fmt: skip
_SENT = (
    "application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor",
    "application/vnd.kubernetes.protobuf", "text/plain", "application/json; charset=utf-8", "",
    "application/x-www-form-urlencoded", "application/cbor",
)  # fmt: skip
_PATCHES = _SENT[2:6]
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
_TAILS = ("/status", "/scale", "/", "/x", "/status/x", "/eviction", "/binding", "/log", "/token", "/approval",
          "/finalize", "/resize", "/ephemeralcontainers", "/proxy", "/exec")  # fmt: skip
_USERS = ("alice", "bob", "anonymous", "node1", "node2", "admin", "nosuchtoken")
_IMPERSONATED: tuple[dict[str, str], ...] = (
    {"Impersonate-User": "alice"},
    {"Impersonate-User": "jane", "Impersonate-Group": "devs"},
    {"Impersonate-User": "system:serviceaccount:${ns}:default"},
    {"Impersonate-User": "system:anonymous"},
    {"Impersonate-User": "system:node:node1", "Impersonate-Group": "system:nodes"},
    {"Impersonate-Group": "devs"},
    {"Impersonate-User": "jane", "Impersonate-Uid": "u"},
    {"Impersonate-User": "jane", "Impersonate-Extra-Scopes": "a"},
    {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"},
)
_TIED = re.compile(r"[?&](?:watch|timeoutSeconds)=|/watch/")
"""Watches keep their ends: one without would hold up everything."""


class Mutations:
    """Makes other conversations of recorded ones."""

    def __init__(self, scenarios: Iterable[dict[str, Any]]) -> None:
        self._values: dict[str, list[Any]] = defaultdict(list)
        self._siblings: dict[str, list[str]] = defaultdict(list)
        self._parameters = set(_PARAMETERS)
        self._accepted = set(_ACCEPTED)
        for scenario in scenarios:
            for step in scenario["steps"]:
                self._learn(step)
        self._values = {key: _distinct(values) for key, values in self._values.items()}
        self._siblings = {key: sorted(set(names)) for key, names in self._siblings.items()}
        self._all_parameters, self._all_accepted = sorted(self._parameters), sorted(self._accepted)

    def _learn(self, step: Step) -> None:
        if "body" in step:
            self._learn_values(step["body"], "")
        query = step.get("path", "").partition("?")[2]
        self._parameters.update(part for part in query.split("&") if part and not part.startswith(("watch", "timeout")))
        if accept := step.get("headers", {}).get("Accept"):
            self._accepted.add(accept)

    def _learn_values(self, value: Any, key: str) -> None:
        if isinstance(value, dict):
            self._siblings[key] += value
            for name, item in value.items():
                self._values[name].append(item)
                self._learn_values(item, name)
        elif isinstance(value, list):
            for item in value:
                self._learn_values(item, key)

    def conversation(self, choice: random.Random, steps: list[Step]) -> list[Step]:
        """Recorded steps with some changed, said twice, left out or in another order."""
        rate = choice.choice((0.1, 0.2, 0.4))
        made: list[Step] = []
        for number, step in enumerate(steps):
            whole = {**step, "id": step.get("id", str(number))}
            if "method" not in step or "background" in step or choice.random() > rate:
                made.append(whole)
                continue
            changed = self._changed(choice, step)
            match choice.randrange(8):
                case 0 | 1 | 2:
                    made.append({**changed, "id": whole["id"]})
                case 3 | 4 | 5:
                    made += [whole, {**changed, "id": f"{whole['id']}+"}]
                case 6:
                    made += [{**changed, "id": f"{whole['id']}-"}, whole]
                case _:
                    made.append({**choice.choice([each for each in steps if "method" in each]), "id": f"{number}~"})
        return made

    def _changed(self, choice: random.Random, step: Step) -> Step:
        made: Step = json.loads(json.dumps({name: value for name, value in step.items() if name != "until"}))
        for _ in range(choice.choice((1, 1, 1, 2, 3))):
            if "body" in made and choice.random() < 0.7:
                self._change_body(choice, made)
            else:
                self._change_head(choice, made)
        return made if _is_harmless(made) else step

    def _change_body(self, choice: random.Random, step: Step) -> None:
        body = step["body"]
        if isinstance(body, dict) and choice.random() < 0.3 and self._set_catalogued(choice, body):
            return
        places = _places(body)
        if not places:
            step["body"] = choice.choice(_ODD)
            return
        target, key = choice.choice(places)
        match choice.randrange(9):
            case 0 | 1:
                del target[key]
            case 2:
                target[key] = choice.choice(_ODD)
            case 3 | 4 | 5 if isinstance(key, str) and self._values.get(key):
                target[key] = json.loads(json.dumps(choice.choice(self._values[key])))
            case 6 if isinstance(target[key], dict) and self._siblings.get(str(key)):
                name = choice.choice(self._siblings[str(key)])
                target[key][name] = json.loads(json.dumps(choice.choice(self._values[name])))
            case 7 if isinstance(target, list):
                target.insert(0, json.loads(json.dumps(target[key])))
            case 8 if isinstance(target, dict):
                target[choice.choice(("unknown", "name", "kind", "metadata", "spec"))] = choice.choice(_ODD)
            case _:
                target[key] = choice.choice(_ODD)

    def _set_catalogued(self, choice: random.Random, body: dict[str, Any]) -> bool:
        """Whether a field of the catalogue was set: the body is an object of a built-in kind."""
        try:
            structs = structs_in(body)
        except (TypeError, AttributeError, LookupError, ValueError):
            return False
        set_some_field(choice, *choice.choice(structs))
        return True

    def _change_head(self, choice: random.Random, step: Step) -> None:
        headers = step.setdefault("headers", {})
        tied = _TIED.search(step["path"])
        match choice.randrange(12):
            case 0 | 1 | 2 | 3 if not tied:
                joint = "&" if "?" in step["path"] else "?"
                step["path"] += joint + choice.choice(self._all_parameters)
            case 4 | 5 | 6:
                headers["Accept"] = choice.choice(self._all_accepted)
            case 7:
                headers["Content-Type"] = choice.choice(_PATCHES if step["method"] == "PATCH" else _SENT)
            case 8 if not tied:
                step["method"] = choice.choice(_METHODS)
            case 9 if not tied:
                path, question, query = step["path"].partition("?")
                cut = path.rpartition("/")[0] or path
                step["path"] = choice.choice((path + choice.choice(_TAILS), cut)) + question + query
            case 10:
                step["as"] = choice.choice(_USERS)
            case 11 if "as" not in step:
                headers.update(choice.choice(_IMPERSONATED))
            case _:
                headers["Accept"] = choice.choice(self._all_accepted)


def _is_harmless(step: Step) -> bool:
    """Whether a step takes nothing away that both servers need from then on: what is there for all namespaces."""
    path = step["path"].partition("?")[0].rstrip("/")
    whole = re.fullmatch(r"/apis?(/[^/]+){1,2}/[a-z]+", path) is not None or path.count("/") < 4
    return step["method"] != "DELETE" or ("${ns}" in path or "${uniq}" in path) or not whole


def _distinct(values: list[Any]) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with each of its keys; some recorded bodies are deeper than Python's stack."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        container = pending.pop()
        if isinstance(container, dict | list):
            keys = list(container) if isinstance(container, dict) else list(range(len(container)))
            found += ((container, key) for key in keys)
            pending += (container[key] for key in keys)
    return found
