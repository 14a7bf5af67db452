"""Expressions in CEL that mean something: made by type, from variables of known types, so that most of them run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

Variables = Mapping[str, str]
"""Names, such as ``self.a``, and the types of their values: bool, int, double, string, list, map, any."""
_PATTERNS = ("^a", "b$", "[a-c]+", "a|b", ".*", "^$", "\\\\d+", "(a)(b)?", "[[:alpha:]]", "a{2,3}", "(?i)A", "x*")
_TEXTS = ("''", "'a'", "'ab'", "'b,c'", "'1'", "'é'", "'a b'", "'A'", "'1Gi'", "'10.0.0.1'", "'fd00::1'", "'1h'",
          "'x'", "'https://h.example:80/p?q=1#f'", "'2020-01-01T00:00:00Z'", "'10.0.0.0/8'", "'1.2.3'", "'%d'",
          "'-1'")  # fmt: skip
_INTEGERS = ("0", "1", "2", "-1", "7", "9223372036854775807", "-9223372036854775808", "100", "3u")
_DOUBLES = ("0.0", "1.5", "-1.0", "1e10", "2.0", "0.1")

_BOOLS = (
    "{int} == {int}", "{int} < {int}", "{int} >= {int}", "{double} > {double}", "{string} == {string}",
    "{string} < {string}", "{string} != {string}", "!({bool})", "{bool} && {bool}", "{bool} || {bool}",
    "({bool} ? {bool} : {bool})", "{string}.startsWith({string})", "{string}.endsWith({string})",
    "{string}.contains({string})", "{string}.matches('{pattern}')", "{string} in {list}", "{list} == {list}",
    "{list}.all(x, x != {string})", "{list}.exists(x, x == {string})", "{list}.exists_one(x, x.size() > {int})",
    "{list}.isSorted()", "{string} in {map}", "{map}.all(k, {map}[k] > {int})", "{map}.exists(k, k == {string})",
    "{map} == {map}", "isQuantity({string})", "isIP({string})", "isCIDR({string})", "isURL({string})",
    "isSemver({string})", "ip({string}).isLoopback()", "cidr({string}).containsIP({string})",
    "quantity({string}).isGreaterThan(quantity({string}))", "quantity({string}).compareTo(quantity({string})) == {int}",
    "semver({string}).isLessThan(semver({string}))", "url({string}).getHost() == {string}",
    "timestamp({string}) < timestamp({string})", "duration({string}) > duration({string})",
    "timestamp({string}).getFullYear() == {int}", "type({int}) == int", "{any} == {any}", "{any} != null",
    "sets.intersects({list}, {list})", "sets.contains({list}, {list})", "sets.equivalent({list}, {list})",
    "dyn({string}) == dyn({int})", "{int} in [{int}, {int}]", "optional.of({string}).hasValue()",
    "{map}[?{string}].hasValue()", "{list}[?{int}].orValue({string}) == {string}", "{double} == {int}",
    "format.dns1123Label().validate({string}).hasValue()", "format.named('uri').hasValue()", "{string}.size() == {int}",
    "{list}.transformList(i, v, i + {int}).size() > 0" , "{map}.transformMap(k, v, v + 1).size() == {int}",
    "cel.bind(v, {string}, v + v == {string})", "[{string}, {string}].join({string}) == {string}",
    "{list}.map(x, x.size()).sum() > {int}", "{string}.find('{pattern}') == {string}", "isQuantity({any})",
    "string({int}) == {string}", "int({string}) == {int}", "double({string}) > {double}",
    "bytes({string}).size() > {int}",
)  # fmt: skip
_STRINGS = (
    "{string} + {string}", "{string}.lowerAscii()", "{string}.upperAscii()", "{string}.trim()",
    "{string}.replace({string}, {string})", "{string}.replace({string}, {string}, {int})", "{string}.substring({int})",
    "{string}.substring({int}, {int})", "{string}.charAt({int})", "string({int})", "string({double})", "string({bool})",
    "{list}.join({string})", "{list}.join()", "{list}[{int}]", "({bool} ? {string} : {string})",
    "'%s-%d'.format([{string}, {int}])", "'%.2f %e'.format([{double}, {double}])", "'%x %X'.format([{int}, {int}])",
    "'%o %b'.format([{int}, {int}])", "'%s'.format([{list}])", "'%s'.format([{map}])", "{string}.reverse()",
    "{string}.find('{pattern}')", "{string}.split({string})[0]", "optional.of({string}).orValue({string})",
    "url({string}).getScheme()", "string(ip({string}))", "string(quantity({string}))",
    "string(duration({string}))", "string(timestamp({string}))",
    "string(bytes({string}))", "ip({string}).family() == 4 ? {string} : {string}", "'%s'.format([{any}])",
    "strings.quote({string})",
)  # fmt: skip
_INTS = (
    "{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} / {int}", "{int} % {int}", "-({int})", "size({string})",
    "{list}.size()", "size({map})", "int({string})", "int({double})", "{string}.indexOf({string})",
    "{string}.lastIndexOf({string})", "{string}.indexOf({string}, {int})", "({bool} ? {int} : {int})",
    "{list}.indexOf({string})", "{list}.lastIndexOf({string})", "timestamp({string}).getMonth()",
    "duration({string}).getSeconds()", "quantity({string}).asInteger()", "{list}.map(x, size(x)).max()",
    "{list}.map(x, size(x)).sum()", "{map}[{string}]", "semver({string}).major()", "cidr({string}).prefixLength()",
    "math.greatest({int}, {int})",
)  # fmt: skip
_DOUBLE = ("{double} + {double}", "{double} * {double}", "{double} / {double}", "double({int})", "double({string})",
           "quantity({string}).asApproximateFloat()", "-({double})")  # fmt: skip
_LISTS = ("[{string}, {string}]", "[]", "{list} + {list}", "{list}.filter(x, {bool})", "{list}.map(x, x + {string})",
          "{string}.split({string})", "{string}.split({string}, {int})", "{string}.findAll('{pattern}')",
          "{map}.map(k, k)", "{list}.sort()", "{list}.slice({int}, {int})", "{list}.distinct()",
          "[[{string}]].flatten()",
          "{list}.map(x, {bool}, x)")  # fmt: skip
_MAPS = ("{{'a': {int}}}", "{{}}", "{{{string}: {int}, 'b': {int}}}", "({bool} ? {map} : {map})")
_SHAPES: dict[str, Sequence[str]] = {
    "bool": _BOOLS,
    "string": _STRINGS,
    "int": _INTS,
    "double": _DOUBLE,
    "list": _LISTS,
    "map": _MAPS,
    "any": ("{int}", "{string}", "{list}", "{bool}", "null", "{double}", "{map}"),
}
_LITERALS: dict[str, Sequence[str]] = {
    "bool": ("true", "false"),
    "string": _TEXTS,
    "int": _INTEGERS[:-1],
    "double": _DOUBLES,
    "list": ("['a', 'b']", "[]", "['1']"),
    "map": ("{'a': 1}", "{}"),
    "any": ("null", "1", "'a'"),
}
_FAULTS = ("nobody", "self.nobody", "{string} + 1", "size({int})", "{int} ==", "'a", "f({string})", "{list}.all(x)",
           "{string}.nobody()", "1 +", "self[", "a.b.c", "{string} && {bool}", "[1, 'a']")  # fmt: skip


def expression(choice: random.Random, wanted: str, variables: Variables, depth: int = 2) -> str:
    """An expression of a type; now and then one with a fault."""
    if choice.random() < 0.015:
        return _filled(choice, choice.choice(_FAULTS), variables, 0)
    own = [name for name, of in variables.items() if of == wanted]
    if depth <= 0 or choice.random() < 0.12:
        if own and choice.random() < 0.75:
            return choice.choice(own)
        return choice.choice(_LITERALS[wanted])
    return _filled(choice, choice.choice(_SHAPES[wanted]), variables, depth - 1)


def _filled(choice: random.Random, shape: str, variables: Variables, depth: int) -> str:
    """A shape with its places filled."""
    made, at = "", 0
    while at < len(shape):
        if shape.startswith(("{{", "}}"), at):
            made, at = made + shape[at], at + 2
        elif shape[at] == "{" and (end := shape.find("}", at)) > 0 and shape[at + 1 : end] in (*_SHAPES, "pattern"):
            wanted = shape[at + 1 : end]
            made += choice.choice(_PATTERNS) if wanted == "pattern" else _part(choice, wanted, variables, depth)
            at = end + 1
        else:
            made, at = made + shape[at], at + 1
    return made


def _part(choice: random.Random, wanted: str, variables: Variables, depth: int) -> str:
    made = expression(choice, wanted, variables, depth)
    return f"({made})" if " " in made and not made.startswith(("[", "'", "(", "{")) else made
