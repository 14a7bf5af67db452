"""ConfigMaps: two bags of keys, a size limit, and no change once immutable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import refusals
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import WHOLE, FieldError, Path, forbidden, invalid, too_long
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

SIZE_LIMIT: Final = 1024 * 1024
FROZEN: Final = "field is immutable when `immutable` is set"
_DATA: Final = Path("data")
_BINARY: Final = Path("binaryData")
_LONGEST: Final = 4
"""How many bytes a character may have."""


def _characters(data: Mapping[str, str]) -> int:
    return sum(map(len, data.values()))


def decoded_size(text: str) -> int:
    """How many bytes canonical base64 stands for."""
    return len(text) // 4 * 3 - text.count("=", -2)


class ConfigMapStrategy(Strategy):
    """``default`` has nothing to do: an empty ``data`` is not written."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    columns = (
        NAME,
        Column(
            "Data",
            "string",
            lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()),
            description=Doc("core.v1.ConfigMap", "data"),
        ),
        AGE,
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        if not binary and names.are_known_config_map_keys(data) and _LONGEST * _characters(data) <= SIZE_LIMIT:
            return errs
        size = 0
        for key, value in data.items():
            if messages := names.check_config_map_key(key):
                errs += refusals(_DATA.key(key), key, messages)
            if key in binary:
                errs.append(invalid(_DATA.key(key), key, "duplicate of key present in binaryData"))
            size += len(value) if value.isascii() else len(value.encode())
        for key, value in binary.items():
            if messages := names.check_config_map_key(key):
                errs += refusals(_BINARY.key(key), key, messages)
            size += decoded_size(value or "")
        if size > SIZE_LIMIT:
            errs.append(too_long(WHOLE, "", SIZE_LIMIT))
        return errs

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        if old.get("immutable"):
            if not obj.get("immutable"):
                errs.append(forbidden(Path("immutable"), FROZEN))
            if (obj.get("data") or {}) != (old.get("data") or {}):
                errs.append(forbidden(Path("data"), FROZEN))
            if as_given(obj, "binaryData") != old.get("binaryData"):
                errs.append(forbidden(Path("binaryData"), FROZEN))
        return errs + self.validate(ctx, obj)
