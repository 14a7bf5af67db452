"""wardle.example.com: the server that Kubernetes' own sample-apiserver is, written with the library.

Flunders refer to another flunder or to a fischer; version v1alpha1 says so otherwise than v1beta1, which is stored.
Fischers list names that no flunder may have, which the plug-in BanFlunder enforces.

    python -m examples.wardle --secure-port=8443                              alone
    python -m examples.wardle --secure-port=8443 --kubeconfig=main.kubeconfig behind the API server of that file
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pilothouse.library import (
    CREATE,
    APIServer,
    Attributes,
    Context,
    FieldError,
    Group,
    GroupResource,
    Kind,
    Object,
    Path,
    Plugin,
    Strategy,
    Version,
    errors,
    field_errors,
)

GROUP = "wardle.example.com"


@dataclass
class FlunderSpecAlpha:
    """What a Flunder refers to, as v1alpha1 has it."""

    reference: Annotated[str, "A name of another flunder or fischer, depending on the reference type."] | None = None
    reference_type: Annotated[str, "The reference type: Flunder or Fischer."] | None = None


@dataclass
class FlunderSpec:
    """What a Flunder refers to."""

    flunder_reference: Annotated[str, "The name of a flunder, mutually exclusive to fischerReference."] | None = None
    fischer_reference: Annotated[str, "A name of a fischer, mutually exclusive to flunderReference."] | None = None
    reference_type: Annotated[str, "The reference type: Flunder or Fischer."] | None = None


@dataclass
class FlunderStatus:
    """Flunders have no status to speak of."""


@dataclass
class FlunderAlpha:
    """A Flunder refers to another Flunder or to a Fischer."""

    spec: FlunderSpecAlpha = field(default_factory=FlunderSpecAlpha)
    status: FlunderStatus = field(default_factory=FlunderStatus)


@dataclass
class Flunder:
    """A Flunder refers to another Flunder or to a Fischer."""

    spec: FlunderSpec = field(default_factory=FlunderSpec)
    status: FlunderStatus = field(default_factory=FlunderStatus)


@dataclass
class Fischer:
    """A Fischer keeps Flunders from having certain names."""

    disallowed_flunders: Annotated[list[str], "Names that no Flunder may have."] | None = None


def default_alpha(flunder: Object) -> None:
    spec = flunder.get("spec") or {}
    if spec.get("reference") and not spec.get("referenceType"):
        spec["referenceType"] = "Flunder"


def from_alpha(flunder: Object) -> Object:
    spec = flunder.get("spec") or {}
    kind = spec.get("referenceType")
    made = {"referenceType": kind} if kind in ("Flunder", "Fischer") else {}
    if kind in ("Flunder", "Fischer") and spec.get("reference"):
        made[f"{kind.lower()}Reference"] = spec["reference"]
    return {**flunder, "spec": made}


def to_alpha(flunder: Object) -> Object:
    spec = flunder.get("spec") or {}
    kind = spec.get("referenceType")
    made = {"referenceType": kind} if kind in ("Flunder", "Fischer") else {}
    if kind in ("Flunder", "Fischer") and spec.get(f"{kind.lower()}Reference"):
        made["reference"] = spec[f"{kind.lower()}Reference"]
    return {**flunder, "spec": made}


class FlunderStrategy(Strategy):
    """References and their type go together."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec, path = obj.get("spec") or {}, Path("spec")
        flunder, fischer = spec.get("flunderReference", ""), spec.get("fischerReference", "")
        kind = spec.get("referenceType", "")
        errs = []
        if flunder and fischer:
            errs.append(
                wrong(path, "fischerReference", fischer, "cannot be set with flunderReference at the same time")
            )
        elif flunder and kind != "Flunder":
            errs.append(wrong(path, "flunderReference", flunder, "cannot be set if referenceType is not Flunder"))
        elif fischer and kind != "Fischer":
            errs.append(wrong(path, "fischerReference", fischer, "cannot be set if referenceType is not Fischer"))
        elif not fischer and kind == "Fischer":
            errs.append(wrong(path, "fischerReference", fischer, "cannot be empty if referenceType is Fischer"))
        elif not flunder and kind == "Flunder":
            errs.append(wrong(path, "flunderReference", flunder, "cannot be empty if referenceType is Flunder"))
        if kind not in ("", "Flunder", "Fischer"):
            errs.append(wrong(path, "referenceType", kind, "must be Flunder or Fischer"))
        return errs


def wrong(path: Path, name: str, value: str, why: str) -> FieldError:
    return field_errors.invalid(path.child(name), value, why)


class BanFlunder(Plugin):
    """Refuses new flunders with names that a fischer disallows."""

    name = "BanFlunder"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource(GROUP, "flunders")})

    async def admit(self, attributes: Attributes) -> None:
        fischers = self.environment.objects(GROUP, "v1alpha1", "fischers")
        await fischers.ready()
        if any(attributes.name in (each.get("disallowedFlunders") or ()) for each in fischers.list()):
            why = "this name may not be used, please change the resource name"
            raise errors.forbidden(attributes.resource.group_resource, attributes.name, why)


FLUNDERS = Kind(
    name="Flunder",
    versions=[
        Version(name="v1beta1", schema=Flunder),
        Version(
            name="v1alpha1",
            schema=FlunderAlpha,
            default=default_alpha,
            to_storage=from_alpha,
            from_storage=to_alpha,
        ),
    ],
    strategy=FlunderStrategy(),
)
FISCHERS = Kind(name="Fischer", namespaced=False, versions=[Version(name="v1alpha1", schema=Fischer)])
SERVER = APIServer(name="wardle", groups=[Group(GROUP, [FLUNDERS, FISCHERS])], plugins=[BanFlunder])

if __name__ == "__main__":
    raise SystemExit(SERVER.run())
