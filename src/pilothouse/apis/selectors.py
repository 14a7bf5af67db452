"""Label selectors inside of objects: their validation, and whether a selector fits the template it stands beside."""

from __future__ import annotations

from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.names import check_label_value
from pilothouse.machinery.objects import Object


def validate_label_selector(
    selector: Object | None, path: Path, errs: list[FieldError], *, allow_invalid_values: bool = False
) -> None:
    """Errors of a ``LabelSelector``; a missing one has none."""
    if selector:
        errs += labels.validate_object(selector, path, allow_invalid_values=allow_invalid_values)


def has_invalid_value(selector: Object | None) -> bool:
    """Whether an expression has a value that is no label value, as objects stored long ago may."""
    for expression in (selector or {}).get("matchExpressions") or ():
        if any(check_label_value(value) for value in expression.get("values") or ()):
            return True
    return False


def validate_selector_matches_template(
    selector: labels.Selector, template: Object, path: Path, errs: list[FieldError]
) -> None:
    """A workload must select the pods that it makes. ``path`` is the template's."""
    found: dict[str, str] = template["metadata"].get("labels") or {}
    if not selector.matches(found):
        why = "`selector` does not match template `labels`"
        errs.append(invalid(path.child("metadata", "labels"), dict(sorted(found.items())) or None, why))


def validate_object_selects_template(
    selector: Object | None, template: Object, path: Path, errs: list[FieldError]
) -> None:
    """The same for a ``LabelSelector``: a missing one selects nothing, a wrong one is an error of its own."""
    try:
        read = labels.from_object(selector)
    except labels.SelectorError:
        return
    validate_selector_matches_template(read, template, path, errs)
