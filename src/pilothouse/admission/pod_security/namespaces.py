"""Namespaces whose labels change: labels must be valid, and the owner hears which present pods would be refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pilothouse.admission.pod_security.configuration import Configuration
from pilothouse.admission.pod_security.evaluation import evaluate
from pilothouse.admission.pod_security.policies import (
    PREFIX,
    PRIVILEGED,
    LevelVersion,
    Policy,
    is_stricter,
    read_policy,
)
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupKind

_MAX_PODS: Final = 3000
_SECONDS: Final = 1.0
_SLICE: Final = 100

Pod = dict[str, Any]


def check_labels(
    attributes: Attributes, namespace: dict[str, Any], configuration: Configuration
) -> LevelVersion | None:
    """Refuse invalid labels; answers the level that present pods are to be held against, if there is a new one."""
    labels = namespace["metadata"].get("labels") or {}
    policy, errs = read_policy(labels, configuration.defaults)
    exempt = attributes.namespace in configuration.namespaces
    if attributes.operation == CREATE:
        if errs:
            raise errors.invalid(GroupKind("", "Namespace"), attributes.name, errs)
        if exempt:
            _warn_exempt(attributes, policy, labels, configuration)
        return None
    old = ((attributes.old_object or {}).get("metadata") or {}).get("labels") or {}
    before, old_errs = read_policy(old, configuration.defaults)
    if errs and errs != old_errs:
        raise errors.invalid(GroupKind("", "Namespace"), attributes.name, errs)
    enforce = policy.enforce
    if enforce == before.enforce or enforce.level == PRIVILEGED:
        return None
    if enforce.minor == before.enforce.minor and not is_stricter(enforce.level, before.enforce.level):
        return None
    if exempt:
        _warn_exempt(attributes, policy, labels, configuration)
        return None
    return enforce


def _warn_exempt(
    attributes: Attributes, policy: Policy, labels: Mapping[str, str], configuration: Configuration
) -> None:
    if policy.is_privileged or policy.is_equivalent(configuration.defaults):
        return
    modes = (("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn))
    ignored = ", ".join(
        f"{mode}={wanted}"
        for mode, wanted in modes
        if wanted.level != PRIVILEGED and (PREFIX + mode in labels or f"{PREFIX}{mode}-version" in labels)
    )
    attributes.warnings.append(
        f"namespace {quote(attributes.name)} is exempt from Pod Security, and the policy ({ignored}) will be ignored"
    )


async def describe_pods(
    namespace: str, pods: Sequence[Pod], enforce: LevelVersion, configuration: Configuration, now: Callable[[], float]
) -> list[str]:
    """Warnings about the pods that a new level would refuse, alike ones together, within a second's work."""
    ordered = _prioritize(pods, configuration)
    deadline = now() + _SECONDS
    checked = 0
    names: dict[str, list[str]] = {}
    for pod in ordered[:_MAX_PODS]:
        found = evaluate(enforce, pod["metadata"], pod.get("spec") or {})
        if found.errs:
            names.setdefault(found.reason, []).append(pod["metadata"]["name"])
        checked += 1
        if checked % _SLICE == 0:
            await asyncio.sleep(0)
        if now() >= deadline:
            break
    warnings = []
    if checked < len(ordered):
        warnings.append(
            f"new PodSecurity enforce level only checked against the first {checked} of {len(ordered)} existing pods"
        )
    if names:
        warnings.append(
            f'existing pods in namespace {quote(namespace)} violate the new PodSecurity enforce level "{enforce}"'
        )
    return warnings + sorted(f"{_name_some(found)}: {reason}" for reason, found in names.items())


def _name_some(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"


def _prioritize(pods: Sequence[Pod], configuration: Configuration) -> list[Pod]:
    """One pod of each controller first: its siblings are likely to be the same."""
    first: list[Pod] = []
    siblings: list[Pod] = []
    seen: set[str] = set()
    for pod in pods:
        if (pod.get("spec") or {}).get("runtimeClassName") in configuration.runtime_classes:
            continue
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((each.get("uid", "") for each in owners if each.get("controller")), None)
        if controller is not None and controller in seen:
            siblings.append(pod)
            continue
        first.append(pod)
        if controller is not None:
            seen.add(controller)
    return first + siblings
