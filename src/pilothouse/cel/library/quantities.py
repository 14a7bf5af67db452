"""Quantities such as `100Mi`: parsing, comparing and arithmetic."""

from __future__ import annotations

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.types import struct
from pilothouse.cel.values import fail
from pilothouse.machinery import quantity

QUANTITY_TYPE = struct("kubernetes.Quantity")
_Q = "kubernetes.Quantity"


class QuantityValue:
    """A quantity inside an expression."""

    __slots__ = ("quantity",)
    cel_type = QUANTITY_TYPE

    def __init__(self, value: quantity.Quantity) -> None:
        self.quantity = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.quantity.compare(other.quantity) == 0

    def __hash__(self) -> int:
        return hash(self.quantity.as_decimal())


def _parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(quantity.parse(text))
    except quantity.QuantityError as error:
        return fail(str(error))


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _compare(left: QuantityValue, right: QuantityValue) -> int:
    return left.quantity.compare(right.quantity)


def _as_integer(value: QuantityValue) -> int:
    number = value.quantity.as_int64()
    return number if number is not None else fail("cannot convert value to integer")


def _add(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    return QuantityValue(left.quantity + _operand(right))


def _sub(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    return QuantityValue(left.quantity - _operand(right))


def _operand(value: QuantityValue | int) -> quantity.Quantity:
    return value.quantity if isinstance(value, QuantityValue) else quantity.parse(str(int(value)))


QUANTITY_LIBRARY = Library(
    (
        Function("quantity", [Overload("string_to_quantity", f"(string) -> {_Q}", _parse)]),
        Function("isQuantity", [Overload("is_quantity_string", "(string) -> bool", _is_quantity)]),
        Function("sign", [Overload("quantity_sign", f"({_Q}) -> int", lambda value: value.quantity.sign)]),
        Function(
            "isGreaterThan",
            [Overload("quantity_is_greater_than", f"{_Q}.({_Q}) -> bool", lambda a, b: _compare(a, b) == 1)],
        ),
        Function(
            "isLessThan", [Overload("quantity_is_less_than", f"{_Q}.({_Q}) -> bool", lambda a, b: _compare(a, b) == -1)]
        ),
        Function("compareTo", [Overload("quantity_compare_to", f"{_Q}.({_Q}) -> int", _compare)]),
        Function(
            "asApproximateFloat",
            [Overload("quantity_get_float", f"{_Q}.() -> double", lambda value: value.quantity.as_approximate_float())],
        ),
        Function("asInteger", [Overload("quantity_get_int", f"{_Q}.() -> int", _as_integer)]),
        Function(
            "isInteger",
            [Overload("quantity_is_integer", f"{_Q}.() -> bool", lambda value: value.quantity.as_int64() is not None)],
        ),
        Function(
            "add",
            [
                Overload("quantity_add", f"{_Q}.({_Q}) -> {_Q}", _add),
                Overload("quantity_add_int", f"{_Q}.(int) -> {_Q}", _add),
            ],
        ),
        Function(
            "sub",
            [
                Overload("quantity_sub", f"{_Q}.({_Q}) -> {_Q}", _sub),
                Overload("quantity_sub_int", f"{_Q}.(int) -> {_Q}", _sub),
            ],
        ),
    ),
    types=(QUANTITY_TYPE,),
)
