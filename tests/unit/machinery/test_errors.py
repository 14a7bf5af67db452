"""Failures as clients see them: codes, reasons, words, details."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery import errors, field_errors
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.field_errors import FieldError, Path, aggregate, show_value
from pilothouse.machinery.gvk import GroupKind, GroupResource

PODS = GroupResource("", "pods")
DEPLOYMENTS = GroupResource("apps", "deployments")
IN_APPS = {"name": "a", "group": "apps", "kind": "deployments"}


@pytest.mark.parametrize(
    ("error", "code", "reason", "message", "details"),
    [
        (errors.not_found(DEPLOYMENTS, "a"), 404, "NotFound", 'deployments.apps "a" not found', IN_APPS),
        (
            errors.already_exists(PODS, "a"),
            409,
            "AlreadyExists",
            'pods "a" already exists',
            {"name": "a", "kind": "pods"},
        ),
        (
            errors.conflict(DEPLOYMENTS, "a", "why"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on deployments.apps "a": why',
            IN_APPS,
        ),
        (errors.gone("x"), 410, "Gone", "x", None),
        (errors.expired("x"), 410, "Expired", "x", None),
        (errors.bad_request("x"), 400, "BadRequest", "x", None),
        (errors.unauthorized(), 401, "Unauthorized", "not authorized", None),
        (
            errors.forbidden(PODS, "a", "why"),
            403,
            "Forbidden",
            'pods "a" is forbidden: why',
            {"name": "a", "kind": "pods"},
        ),
        (errors.forbidden(PODS, "", "why"), 403, "Forbidden", "pods is forbidden: why", {"kind": "pods"}),
        (errors.forbidden(GroupResource("", ""), "", "why"), 403, "Forbidden", "forbidden: why", {}),
        (errors.generic("x"), 500, "", "x", None),
        (errors.too_many_requests("x", 3), 429, "TooManyRequests", "x", {"retryAfterSeconds": 3}),
        (errors.too_many_requests("x", 0), 429, "TooManyRequests", "x", {}),
        (errors.timeout("x", 0), 504, "Timeout", "Timeout: x", {}),
        (
            errors.internal_error("x"),
            500,
            "InternalError",
            "Internal error occurred: x",
            {"causes": [{"message": "x"}]},
        ),
    ],
)
def test_status(error: StatusError, code: int, reason: str, message: str, details: Any) -> None:
    status = error.status
    assert (error.code, status["code"], status.get("reason", ""), status["message"]) == (code, code, reason, message)
    assert status.get("details") == details
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")


def test_the_order_of_fields_is_the_original_s() -> None:
    assert list(errors.not_found(PODS, "a").status) == [
        "kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code",
    ]  # fmt: skip


def test_retry_after() -> None:
    assert errors.too_many_requests("x", 7).retry_after == 7
    assert errors.bad_request("x").retry_after == 0


def test_invalid() -> None:
    path = Path("spec")
    errs = [field_errors.required(path.child("a")), field_errors.invalid(path.child("b"), 5, "too big")]
    error = errors.invalid(GroupKind("apps", "Deployment"), "x", errs)
    assert error.code == 422
    assert error.message == (
        'Deployment.apps "x" is invalid: [spec.a: Required value, spec.b: Invalid value: 5: too big]'
    )
    assert error.details == {
        "name": "x",
        "group": "apps",
        "kind": "Deployment",
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
            {"reason": "FieldValueInvalid", "message": "Invalid value: 5: too big", "field": "spec.b"},
        ],
    }
    single = errors.invalid(GroupKind("", "Pod"), "", errs[:1])
    assert single.message == 'Pod "" is invalid: spec.a: Required value'


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path("a"), "a"),
        (Path("a", "b"), "a.b"),
        (Path("a").child("b", "c").index(3).key("x/y").child("d"), "a.b.c[3][x/y].d"),
        (Path().child("a"), "a"),
    ],
)
def test_paths(path: Path, text: str) -> None:
    assert str(path) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (field_errors.invalid(Path("a"), "x", "why"), 'a: Invalid value: "x": why'),
        (field_errors.invalid(None, {"b": 1}, "why"), '<nil>: Invalid value: {"b":1}: why'),
        (field_errors.required(Path("a"), "why"), "a: Required value: why"),
        (field_errors.forbidden(Path("a"), "why"), "a: Forbidden: why"),
        (field_errors.duplicate(Path("a"), "x"), 'a: Duplicate value: "x"'),
        (field_errors.not_found(Path("a"), "x"), 'a: Not found: "x"'),
        (
            field_errors.not_supported(Path("a"), "x", ("y", "z")),
            'a: Unsupported value: "x": supported values: "y", "z"',
        ),
        (field_errors.too_long(Path("a"), "x", 1), "a: Too long: may not be more than 1 byte"),
        (field_errors.too_long(Path("a"), "x", 63), "a: Too long: may not be more than 63 bytes"),
        (field_errors.too_long_characters(Path("a"), "x", 2), "a: Too long: may not be more than 2 characters"),
        (field_errors.too_many(Path("a"), 5, 3), "a: Too many: 5: must have at most 3 items"),
        (field_errors.too_many(Path("a"), -1, -1), "a: Too many: has too many items"),
        (field_errors.internal(Path("a"), "why"), "a: Internal error: why"),
        (field_errors.type_invalid(Path("a"), 1.5, "why"), "a: Invalid value: 1.5: why"),
    ],
)
def test_field_errors(error: FieldError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\n", '"a\\n"'), (True, "true"), (3, "3"), (3.0, "3"), (3.14159265, "3.14159265"), (float("inf"), "+Inf"),
        (None, "null"), ([1], "[1]"), (b"raw", "raw"),
        ({"a": "<b>&\u2028"}, '{"a":"\\u003cb\\u003e\\u0026\\u2028"}'),
    ],
)  # fmt: skip
def test_refused_values(value: Any, text: str) -> None:
    assert show_value(value) == text


def test_equal_errors_are_one() -> None:
    one, same = field_errors.required(Path("a")), field_errors.required(Path("a"))
    assert one == same
    assert len({one, same, field_errors.required(Path("b"))}) == 2


def test_listed_errors_are_unique_unless_repetition_is_wanted() -> None:
    errs = [field_errors.required(Path("a")), field_errors.required(Path("b")), field_errors.required(Path("a"))]
    assert field_errors.listed(errs) == errs[:2]
    assert field_errors.listed(errs, repeated=True) == errs


def test_errors_that_show_long_values_over_and_over_are_cut_off() -> None:
    values = ["x" * 100] * 1000
    errs = [field_errors.invalid(Path("a").index(at), values, "no") for at in range(100_000)]
    assert 1 < len(field_errors.listed(errs)) < 100
    assert field_errors.listed(iter(errs[:1])) == errs[:1]


def test_aggregate() -> None:
    assert aggregate(["a"]) == "a"
    assert aggregate(["a", "b", "a"]) == "[a, b]"
    assert aggregate(["a", "a"]) == "a"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 10.0, "b": [1.5, -2.0]}, '{"a":10,"b":[1.5,-2]}'),
        ([1e20, 1e21, 0.0], "[100000000000000000000,1e+21,0]"),
    ],
)
def test_whole_numbers_inside_of_values_have_no_fraction(value: Any, text: str) -> None:
    assert show_value(value) == text
