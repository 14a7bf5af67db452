"""Extensions that Kubernetes' base environment does not offer but parts of it or users' own environments do:
`math`, `base64` and `cel.bind`."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any

from pilothouse.cel.arithmetic import checked
from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.macros import BINDINGS, MacroError, Macros, call
from pilothouse.cel.nodes import Ident, ListNode, Node
from pilothouse.cel.values import UInt, compare, fail

_NUMBERS = ("double", "int", "uint")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return fail("illegal base64 data at input byte 0")


ENCODERS = Library(
    (
        Function("base64.decode", [Overload("base64_decode_string", "(string) -> bytes", _decode)]),
        Function(
            "base64.encode",
            [Overload("base64_encode_bytes", "(bytes) -> string", lambda data: base64.b64encode(data).decode())],
        ),
    )
)
BINDINGS_LIBRARY = Library(macros=BINDINGS)


def _extreme(name: str, wanted: int) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        items = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        if not items:
            fail(f"math.@{name}(list) argument must not be empty")
        best = items[0]
        for item in items[1:]:
            if compare(item, best) == wanted:
                best = item
        return best

    return apply


def _extreme_macro(function: str, word: str) -> Callable[[int, Node | None, list[Node]], Node | None]:
    def expand(at: int, target: Node | None, arguments: list[Node]) -> Node | None:
        if not isinstance(target, Ident) or target.name != "math":
            return None
        if not arguments:
            raise MacroError(target.offset, f"math.{word}() requires at least one argument")
        if len(arguments) <= 2:
            return call(at, function, *arguments)
        return call(at, function, ListNode(at, arguments))

    return expand


def _macros() -> Macros:
    return {
        (word, count, True): _extreme_macro(f"math.@{short}", word)
        for word, short in (("greatest", "max"), ("least", "min"))
        for count in range(33)
    }


def _extreme_function(name: str, wanted: int) -> Function:
    apply = _extreme(name, wanted)
    overloads = [Overload(f"math_@{name}_{kind}", f"({kind}) -> {kind}", apply) for kind in _NUMBERS]
    for left in _NUMBERS:
        for right in _NUMBERS:
            result = left if left == right else "dyn"
            overloads.append(Overload(f"math_@{name}_{left}_{right}", f"({left}, {right}) -> {result}", apply))
    overloads += [Overload(f"math_@{name}_list_{kind}", f"(list({kind})) -> {kind}", apply) for kind in _NUMBERS]
    return Function(f"math.@{name}", overloads)


def _sign(value: Any) -> Any:
    sign = (value > 0) - (value < 0)
    return value.__class__(sign) if not (value.__class__ is float and math.isnan(value)) else math.nan


def _round(value: float) -> float:
    if math.isnan(value) or math.isinf(value):
        return value
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: value if math.isnan(value) or math.isinf(value) else float(function(value))


def _absolute(value: Any) -> Any:
    return checked(abs(value)) if value.__class__ is int else value.__class__(abs(value))


def _same(name: str, word: str, kinds: tuple[str, ...], apply: Callable[[Any], Any]) -> Function:
    return Function(f"math.{name}", [Overload(f"math_{word}_{kind}", f"({kind}) -> {kind}", apply) for kind in kinds])


def _test(name: str, apply: Callable[[float], bool]) -> Function:
    return Function(f"math.{name}", [Overload(f"math_{name}_double", "(double) -> bool", apply)])


def _bits(name: str, apply: Callable[[int, int], int]) -> Function:
    def run(left: Any, right: Any) -> Any:
        return left.__class__(apply(int(left), int(right)))

    return Function(
        f"math.{name}",
        [Overload(f"math_{name}_{kind}_{kind}", f"({kind}, {kind}) -> {kind}", run) for kind in ("int", "uint")],
    )


def _bit_not(value: Any) -> Any:
    return UInt(~int(value) & ((1 << 64) - 1)) if value.__class__ is UInt else ~value


def _sqrt(value: Any) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


MATH = Library(
    (
        _extreme_function("max", 1),
        _extreme_function("min", -1),
        _same("ceil", "ceil", ("double",), _whole(math.ceil)),
        _same("floor", "floor", ("double",), _whole(math.floor)),
        _same("round", "round", ("double",), _round),
        _same("trunc", "trunc", ("double",), _whole(math.trunc)),
        _same("abs", "abs", _NUMBERS, _absolute),
        _same("sign", "sign", _NUMBERS, _sign),
        _test("isInf", math.isinf),
        _test("isNaN", math.isnan),
        _test("isFinite", math.isfinite),
        _bits("bitAnd", lambda left, right: left & right),
        _bits("bitOr", lambda left, right: left | right),
        _bits("bitXor", lambda left, right: left ^ right),
        _same("bitNot", "bitNot", ("int", "uint"), _bit_not),
        Function("math.sqrt", [Overload(f"math_sqrt_{kind}", f"({kind}) -> double", _sqrt) for kind in _NUMBERS]),
    ),
    _macros(),
)
