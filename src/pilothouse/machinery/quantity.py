"""Resource quantities: ``100m``, ``128Mi``, ``1.5``, ``1e3``.

Every write passes its quantities through ``canonicalize``, which gives the text that kube-apiserver would store and
answer. That text is not always the shortest one: a text that already looks canonical to kube-apiserver's scanner
(``1.500``, ``+1``, ``01``) is kept as it came. Answers are remembered for short texts, so common ones cost one lookup.

``Quantity`` is immutable and exact. A value is ``mantissa * 10**scale``; ``wide`` marks values that kube-apiserver
holds as arbitrary-precision decimals, because those round negative numbers and overflow differently. Hostile exponents
(``1e2147483647``) are never expanded, so every operation is bounded.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

FORMAT_ERROR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_ERROR: Final = "unable to parse numeric part of quantity"
SUFFIX_ERROR: Final = "unable to parse quantity's suffix"

NANO: Final = -9
MILLI: Final = -3
MAX_INT64: Final = 2**63 - 1
MAX_MILLI_VALUE: Final = MAX_INT64 // 1000

# Nothing is given back once it is taken: three parts may have digits, and trying all ways to share them is cubic.
_SHAPE = re.compile(r"([+-]?)(0*+)([0-9]*+)(\.[0-9]*+)?+([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_EXPONENTS: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = {0: "", **{exponent: suffix for suffix, exponent in _BINARY_EXPONENTS.items()}}

# What strings.TrimSpace of Go removes.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

_MAX_DIGITS: Final = 1000
_MAX_SHIFT: Final = 2000
_CACHE_SIZE: Final = 8192
_CACHE_TEXT: Final = 32


class QuantityError(ValueError):
    """A text that is no quantity; its message is what clients see."""


class Quantity:
    """An exact amount and the family of suffixes it is written with."""

    __slots__ = ("_text", "format", "mantissa", "scale", "wide")

    def __init__(
        self, mantissa: int, scale: int = 0, format: str = DECIMAL_SI, *, wide: bool = False, text: str = ""
    ) -> None:
        self.mantissa = mantissa
        self.scale = scale
        self.format = format
        self.wide = wide or not -MAX_INT64 - 1 <= mantissa <= MAX_INT64
        self._text = text

    def __str__(self) -> str:
        if not self._text:
            self._text = self._canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __hash__(self) -> int:
        return hash(_strip_zeros(self.mantissa, self.scale))

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0

    def __neg__(self) -> Quantity:
        return Quantity(-self.mantissa, self.scale, self.format, wide=self.wide)

    def __add__(self, other: Quantity) -> Quantity:
        return self._sum(other, other.mantissa)

    def __sub__(self, other: Quantity) -> Quantity:
        return self._sum(other, -other.mantissa)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.mantissa * factor, self.scale, self.format, wide=self.wide)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    @property
    def is_zero(self) -> bool:
        return self.mantissa == 0

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1, whatever the formats."""
        left, right = self.mantissa, other.mantissa
        shift = self.scale - other.scale
        if shift and left and right:
            if (left > 0) != (right > 0):
                return 1 if left > 0 else -1
            if abs(shift) > 18:
                apart = len(str(abs(left))) + shift - len(str(abs(right)))
                if apart:
                    return 1 if (apart > 0) == (left > 0) else -1
            if shift > 0:
                left *= 10**shift
            else:
                right *= 10**-shift
        return (left > right) - (left < right)

    def value(self) -> int:
        """The amount as an integer, rounded away from zero."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return self.scaled_value(MILLI)

    def scaled_value(self, scale: int) -> int:
        """The amount in units of ``10**scale`` as a 64-bit integer, overflowing as kube-apiserver does."""
        shift = self.scale - scale
        if shift >= 0:
            exact = self.mantissa * 10**shift if shift < 64 else self._overflow(shift)
            if not self.wide:
                return exact if -MAX_INT64 - 1 <= exact <= MAX_INT64 else 0
            return _wrap(exact)
        quotient, rest = _divide(self.mantissa, -shift)
        if self.wide:
            return _wrap(quotient + 1 if rest else quotient)
        return quotient + self.sign if rest else quotient

    def as_int64(self) -> int | None:
        """The amount if kube-apiserver can give it as an int64 without arithmetic on decimals, else None."""
        if self.wide or self.scale < 0:
            return None
        if self.scale == 0 or self.mantissa == 0:
            return self.mantissa
        if self.scale > 18:
            return None
        exact: int = self.mantissa * 10**self.scale
        return exact if -MAX_INT64 - 1 <= exact <= MAX_INT64 else None

    def as_decimal(self) -> Decimal:
        """The exact amount."""
        digits = tuple(map(int, str(abs(self.mantissa))))
        return Decimal((int(self.mantissa < 0), digits, self.scale))

    def as_approximate_float(self) -> float:
        """The amount as a float, by kube-apiserver's quick way: base times a power of ten."""
        base = float(self.mantissa) if abs(self.mantissa) < 10**300 else float("inf") * self.sign
        if self.scale == 0:
            return base
        power = float(f"1e{self.scale}") if -324 < self.scale < 309 else (0.0 if self.scale < 0 else float("inf"))
        return base * power if self.mantissa else 0.0

    def round_up(self, scale: int) -> Quantity:
        """The amount without digits below ``10**scale``, rounded away from zero."""
        if self.scale >= scale:
            return self
        quotient, rest = _divide(self.mantissa, scale - self.scale)
        if rest:
            quotient += self.sign
        return Quantity(quotient, scale, self.format, wide=self.wide)

    def _overflow(self, shift: int) -> int:
        if not self.mantissa:
            return 0
        return MAX_INT64 + 1 if not self.wide else self.mantissa * pow(10, shift, 2**64)

    def _sum(self, other: Quantity, right: int) -> Quantity:
        form = self.format if self.mantissa else other.format
        wide = self.wide or other.wide
        if not right:
            return Quantity(self.mantissa, self.scale, form, wide=wide)
        if not self.mantissa:
            return Quantity(right, other.scale, form, wide=wide)
        left, scale = self.mantissa, self.scale
        shift = scale - other.scale
        if abs(shift) > _MAX_SHIFT:  # so far apart that the smaller one cannot matter
            larger = (left, scale) if shift > 0 else (right, other.scale)
            return Quantity(*larger, form, wide=True)
        if shift > 0:
            left, scale = left * 10**shift, other.scale
        elif shift < 0:
            right *= 10**-shift
        return Quantity(left + right, scale, form, wide=wide)

    def _canonical(self) -> str:
        if not self.mantissa:
            return "0"
        if self.format == BINARY_SI:
            number = self._whole_from_1024()
            if number is not None:
                times = 0
                while not number & 1023:
                    number >>= 10
                    times += 10
                return f"{number}{_BINARY_SUFFIXES.get(times, '')}"
        mantissa, scale = _strip_zeros(self.mantissa, self.scale)
        surplus = scale % 3
        mantissa, scale = mantissa * 10**surplus, scale - surplus
        if self.format in (DECIMAL_SI, BINARY_SI):
            return f"{mantissa}{_DECIMAL_SUFFIXES.get(scale, '')}"
        return f"{mantissa}e{scale}" if scale else str(mantissa)

    def _whole_from_1024(self) -> int | None:
        """The amount as an integer if binary suffixes can show it: whole, and 1024 or more in magnitude."""
        if self.scale > _MAX_SHIFT:
            return None
        if self.scale >= 0:
            number: int = self.mantissa * 10**self.scale
        else:
            number, rest = _divide(self.mantissa, -self.scale)
            if rest:
                return None
        return number if abs(number) >= 1024 else None


ZERO: Final = Quantity(0, text="0")
_ONE: Final = Quantity(1)
_LARGEST: Final = Quantity(MAX_INT64)
_canonical: dict[str, str] = {}


def parse(text: str) -> Quantity:
    """Read a quantity, or raise ``QuantityError`` with kube-apiserver's words."""
    match = _SHAPE.fullmatch(text) if text else None
    if match is None:
        raise QuantityError(FORMAT_ERROR)
    sign, zeros, whole, point, suffix = match.groups()
    fraction = point[1:] if point else ""
    base, exponent, form = _read_suffix(suffix)
    if len(whole) + len(fraction) > _MAX_DIGITS:
        raise QuantityError(NUMERIC_ERROR)
    number = (whole or "0") + fraction
    quantity = _parse_narrow(text, sign, number, len(fraction), base, exponent, form)
    if quantity is not None:
        return quantity
    if not (zeros or whole or fraction):
        raise QuantityError(NUMERIC_ERROR)
    return _parse_wide(int(sign + number), len(fraction), base, exponent, form)


def _read_suffix(suffix: str) -> tuple[int, int, str]:
    """Base, exponent and format of a suffix."""
    if suffix in _DECIMAL_EXPONENTS:
        return 10, _DECIMAL_EXPONENTS[suffix], DECIMAL_SI
    if suffix in _BINARY_EXPONENTS:
        return 2, _BINARY_EXPONENTS[suffix], BINARY_SI
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1].lstrip("+-0")) > 19:
        raise QuantityError(SUFFIX_ERROR)
    exponent = int(match[1])
    if not -MAX_INT64 - 1 <= exponent <= MAX_INT64:
        raise QuantityError(SUFFIX_ERROR)
    return 10, (exponent + 2**31) % 2**32 - 2**31, DECIMAL_EXPONENT


def _parse_narrow(
    text: str, sign: str, number: str, places: int, base: int, exponent: int, format: str
) -> Quantity | None:
    """The value as int64, if kube-apiserver would hold it so; its text is kept if it looks canonical."""
    if base == 10:
        scale = exponent - places
        if len(number) > 18 or scale < NANO:
            return None
        value = int(number)
        canonical = scale % 3 == 0 and number[0] != "0" and number[-3:] != "000"
    else:
        if places or 15 - len(number) - exponent * 3 // 10 - 1 < 0:
            return None
        scale = 0
        value = int(number)
        canonical = value & 7 != 0
        value <<= exponent
    return Quantity(-value if sign == "-" else value, scale, format, text=text if canonical else "")


def _parse_wide(value: int, places: int, base: int, exponent: int, format: str) -> Quantity:
    """The value as a decimal: rounded to nano, binary ones capped at the largest int64."""
    scale = -places
    if base == 10:
        scale += exponent
    else:
        value <<= exponent
    rounded = Quantity(value, scale, format, wide=True).round_up(NANO)
    if format != BINARY_SI or not value:
        return rounded
    magnitude = rounded if value > 0 else -rounded
    if magnitude > _LARGEST:
        return Quantity(MAX_INT64 if value > 0 else -MAX_INT64, 0, format, wide=True)
    if magnitude < _ONE:
        return Quantity(rounded.mantissa, rounded.scale, DECIMAL_SI, wide=True)
    return rounded


def canonicalize(text: str) -> str:
    """The text kube-apiserver stores for this one; ``QuantityError`` if it is no quantity."""
    known = _canonical.get(text)
    if known is not None:
        return known
    result = str(parse(text))
    if len(text) <= _CACHE_TEXT and len(result) <= _CACHE_TEXT:
        if len(_canonical) >= _CACHE_SIZE:
            _canonical.clear()
        _canonical[text] = result
    return result


def canonicalize_json(value: Any) -> str:
    """``canonicalize`` for decoded JSON; see ``from_json``."""
    if type(value) is str:
        known = _canonical.get(value)
        if known is not None:
            return known
    return "0" if value is None else canonicalize(_text_of(value))


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value.strip(_SPACE)
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise QuantityError(FORMAT_ERROR)


def _format_float(value: float) -> str:
    """A JSON number as Go's encoder writes it: an exponent only below 1e-6 and from 1e21 on."""
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:
        return f"{Decimal(repr(value)).normalize():f}"
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent)}"


def _divide(mantissa: int, places: int) -> tuple[int, int]:
    """Quotient and rest of a division by ``10**places``, cut towards zero."""
    if places > _MAX_SHIFT * 2:
        return 0, mantissa
    quotient, rest = divmod(mantissa if mantissa >= 0 else -mantissa, 10**places)
    return (quotient, rest) if mantissa >= 0 else (-quotient, -rest)


def _wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _strip_zeros(mantissa: int, scale: int) -> tuple[int, int]:
    """The same amount without factors of ten in the mantissa."""
    if mantissa % 10:
        return mantissa, scale
    if not mantissa:
        return 0, 0
    digits = str(mantissa)
    stripped = digits.rstrip("0")
    return int(stripped), scale + len(digits) - len(stripped)
