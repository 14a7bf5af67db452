"""Requests and limits of containers and pods: huge pages, claims, and what containers add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pilothouse.apis.core.pod_spec.amounts import sum_containers
from pilothouse.apis.core.pod_spec.traversal import containers_of
from pilothouse.apis.core.resource_names import (
    CONTAINER_RESOURCES,
    HUGE_PAGES,
    amount,
    check_container_resource_name,
    check_quantity,
    check_resource_name,
    is_huge_page,
    is_pod_level,
    may_overcommit,
)
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.field_errors import not_found as not_found_error
from pilothouse.machinery.names import check_dns1123_label
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import QuantityError, parse
from pilothouse.machinery.schema.emptied import as_given

if TYPE_CHECKING:
    from pilothouse.apis.core.pod_spec.options import PodValidationOptions

Amounts = dict[str, str]
CheckName = Callable[[Path, str], list[FieldError]]

_POD_RESOURCES: Final = ("cpu", HUGE_PAGES, "memory")


@lru_cache(maxsize=1024)
def _page_size(name: str) -> int | None:
    try:
        size = parse(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return None
    return size.value() or None if size.sign > 0 and size.milli_value() % 1000 == 0 else None


def is_divisible(name: str, text: str) -> bool:
    """Whether an amount of huge pages is a whole number of them."""
    size = _page_size(name)
    return size is not None and amount(text).value() % size == 0


def has_indivisible_huge_pages(spec: Object) -> bool:
    """Whether a stored spec has an amount of huge pages that is no whole number of them."""
    for container in containers_of(spec):
        resources = container.get("resources")
        if resources and any(map(_any_indivisible, resources.values())):
            return True
    return _any_indivisible(spec.get("overhead") or {})


def _any_indivisible(amounts: Any) -> bool:
    if not isinstance(amounts, dict):
        return False
    return any(is_huge_page(name) and not is_divisible(name, text) for name, text in amounts.items())


def _check_pod_resource_name(path: Path, name: str) -> list[FieldError]:
    errs = check_resource_name(path, name)
    return errs if errs or is_pod_level(name) else [not_supported(path, name, _POD_RESOURCES)]


def validate_container_resources(
    resources: Object, claim_names: Iterable[str], path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    """Errors of a container's requests, limits and claims."""
    _validate_resources(resources, check_container_resource_name, path, errs, options)
    claims = resources.get("claims")
    if claims:
        _validate_claims(claims, claim_names, path.child("claims"), errs)


def _validate_resources(
    resources: Object, check_name: CheckName, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    limits: Amounts = resources.get("limits") or {}
    requests: Amounts = resources.get("requests") or {}
    for name, text in limits.items():
        if name not in CONTAINER_RESOURCES or text[0] == "-" or check_name is _check_pod_resource_name:
            _validate_one(name, text, check_name, path.child("limits").key(name), errs, options)
    for name, text in requests.items():
        plain = name in CONTAINER_RESOURCES
        if not plain or text[0] == "-" or check_name is _check_pod_resource_name:
            where = path.child("requests").key(name)
            errs += check_name(where, name) + check_quantity(where, name, text)
        limit = limits.get(name)
        if limit != text:
            _validate_request(name, text, limit, path, errs)
        if not plain and is_huge_page(name):
            _validate_huge_pages(name, text, path.child("requests").key(name), errs, options)
    names = limits.keys() | requests.keys()
    if any(map(is_huge_page, names)) and "cpu" not in names and "memory" not in names:
        errs.append(forbidden(path, "HugePages require cpu or memory"))


def _validate_one(
    name: str, text: str, check_name: CheckName, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    errs += check_name(path, name) + check_quantity(path, name, text)
    if is_huge_page(name):
        _validate_huge_pages(name, text, path, errs, options)


def _validate_huge_pages(
    name: str, text: str, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    if not options.allow_indivisible_huge_pages and not is_divisible(name, text):
        errs.append(invalid(path, text, f"{text} is not positive integer multiple of {name}"))


def _validate_request(name: str, text: str, limit: str | None, path: Path, errs: list[FieldError]) -> None:
    if limit is None:
        if not may_overcommit(name):
            errs.append(required(path.child("limits"), "Limit must be set for non overcommitable resources"))
        return
    order = amount(text).compare(amount(limit))
    if order and not may_overcommit(name):
        errs.append(invalid(path.child("requests"), text, f"must be equal to {name} limit of {limit}"))
    elif order > 0:
        errs.append(invalid(path.child("requests"), text, f"must be less than or equal to {name} limit of {limit}"))


def _validate_claims(claims: list[Object], known: Iterable[str], path: Path, errs: list[FieldError]) -> None:
    """Claims that a container uses: each, or each of its requests, once, and all known to the pod."""
    seen: set[str] = set()
    parts: Counter[str] = Counter()
    known = set(known)
    for position, claim in enumerate(claims):
        where = path.index(position)
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            errs.append(required(where, ""))
            continue
        if name in seen:
            errs.append(duplicate(where, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                errs += (invalid(where.child("request"), request, m) for m in check_dns1123_label(request))
            if key in seen:
                errs.append(duplicate(where, key))
            elif not request:
                errs += [duplicate(where, name)] * parts[name]
            if key not in seen and "/" in key:
                parts[key.partition("/")[0]] += 1
            seen.add(key)
        if name not in known:
            error = not_found_error(where, name)
            listed = ": " + ", ".join(sorted(known)) if known else " which is empty"
            error.detail = "must be one of the names in pod.spec.resourceClaims" + listed
            errs.append(error)


def validate_overhead(overhead: Amounts, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """What the runtime itself takes."""
    _validate_resources({"limits": overhead}, check_container_resource_name, path, errs, options)


def validate_pod_resources(spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """Requests and limits of the pod as a whole; ``path`` is the spec's."""
    resources, where = spec["resources"], path.child("resources")
    if (spec.get("os") or {}).get("name") == "windows":
        errs.append(forbidden(where, "may not be set for a windows pod"))
        return
    if as_given(resources, "claims") is not None:
        errs.append(forbidden(where.child("claims"), "claims may not be set for Resources at pod-level"))
    _validate_resources(resources, _check_pod_resource_name, where, errs, options)
    if resources.get("claims"):
        names = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
        _validate_claims(resources["claims"], names - {""}, where.child("claims"), errs)
    _validate_consistency(spec, resources, where, errs)


def _validate_consistency(spec: Object, resources: Object, path: Path, errs: list[FieldError]) -> None:
    """Containers fit into the pod."""
    requests: Amounts = resources.get("requests") or {}
    limits: Amounts = resources.get("limits") or {}
    for name, total in sum_containers(spec, "requests").items():
        if name in requests and total > amount(requests[name]):
            why = f"must be greater than or equal to aggregate container requests of {total}"
            errs.append(invalid(path.child("requests").key(name), requests[name], why))
    for name, total in sum_containers(spec, "limits").items():
        if is_huge_page(name) and name in limits and total > amount(limits[name]):
            why = f"must be greater than or equal to aggregate container limits of {total}"
            errs.append(invalid(path.child("limits").key(name), limits[name], why))
    for position, container in enumerate(spec.get("containers") or ()):
        for name, text in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and amount(text) > amount(limits[name]):
                where = path.child("containers").index(position).key(name).child("limits")
                errs.append(invalid(where, text, f"must be less than or equal to pod limits of {limits[name]}"))
