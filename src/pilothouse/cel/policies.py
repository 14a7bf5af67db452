"""Environments of admission policies and match conditions: object, oldObject, request, namespaceObject, params,
authorizer and variables.

    environment = policy_environment(params=True, authorizer=True)
    program = compile_expression(environment, "object.metadata.name != 'x'", (BOOL,))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pilothouse.cel.declarations import PlainStruct, StructType, TypeProvider
from pilothouse.cel.environment import Environment, Program
from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import COMPATIBLE, CURRENT, libraries
from pilothouse.cel.library.authorizing import AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE
from pilothouse.cel.library.patches import PATCH_LIBRARY, MutationTypes
from pilothouse.cel.planning import InstantiationError
from pilothouse.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of, struct

_STRINGS = list_of(STRING)
_TEXT_MAP = map_of(STRING, STRING)


def _declare(name: str, /, **fields: Type) -> PlainStruct:
    return PlainStruct(struct(f"kubernetes.{name}"), fields)


_KIND = _declare("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = _declare("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_USER = _declare("UserInfo", username=STRING, uid=STRING, groups=_STRINGS, extra=map_of(STRING, _STRINGS))
_REQUEST = _declare(
    "AdmissionRequest",
    kind=_KIND.type,
    resource=_RESOURCE.type,
    subResource=STRING,
    requestKind=_KIND.type,
    requestResource=_RESOURCE.type,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER.type,
    dryRun=BOOL,
    options=DYN,
)
_NAMESPACE_METADATA = _declare(
    "NamespaceMetadata",
    name=STRING,
    generateName=STRING,
    namespace=STRING,
    labels=_TEXT_MAP,
    annotations=_TEXT_MAP,
    UID=STRING,
    creationTimestamp=TIMESTAMP,
    deletionGracePeriodSeconds=INT,
    deletionTimestamp=TIMESTAMP,
    generation=INT,
    resourceVersion=STRING,
    finalizers=_STRINGS,
)
_CONDITION = _declare(
    "NamespaceCondition", status=STRING, type=STRING, lastTransitionTime=TIMESTAMP, message=STRING, reason=STRING
)
_NAMESPACE_SPEC = _declare("NamespaceSpec", finalizers=_STRINGS)
_NAMESPACE_STATUS = _declare("NamespaceStatus", conditions=list_of(_CONDITION.type), phase=STRING)
_NAMESPACE = _declare(
    "Namespace", metadata=_NAMESPACE_METADATA.type, spec=_NAMESPACE_SPEC.type, status=_NAMESPACE_STATUS.type
)
_TYPES: dict[str, StructType] = {
    declared.type.name: declared
    for declared in (
        _KIND, _RESOURCE, _USER, _REQUEST, _NAMESPACE_METADATA, _CONDITION, _NAMESPACE_SPEC, _NAMESPACE_STATUS,
        _NAMESPACE,
    )
}  # fmt: skip
_MUTATIONS = MutationTypes()
_PLAIN_KINDS = frozenset({"any", "bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint"})
VARIABLES_TYPE = struct("kubernetes.variables")


class PolicyTypes:
    """The message types of policies, with the variables declared so far."""

    __slots__ = ("_patches", "_schemas", "_variables")

    def __init__(self, variables: Mapping[str, Type], patches: bool, schemas: Iterable[TypeProvider] = ()) -> None:
        self._variables = PlainStruct(VARIABLES_TYPE, variables)
        self._patches = patches
        self._schemas = tuple(schemas)

    def find(self, name: str) -> StructType | None:
        if name == VARIABLES_TYPE.name:
            return self._variables
        known = _TYPES.get(name) or (_MUTATIONS.find(name) if self._patches else None)
        return known or next((found for each in self._schemas if (found := each.find(name)) is not None), None)


def policy_environment(
    *,
    params: bool = False,
    authorizer: bool = False,
    patches: bool = False,
    variables: Mapping[str, Type] | None = None,
    version: tuple[int, int] = COMPATIBLE,
) -> Environment:
    """Return the environment of a policy's expressions; `variables` None means that it declares none.

    What is known of variables is what `as_field` gives of their types.
    """
    declared: dict[str, Type] = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": _NAMESPACE.type,
        "request": _REQUEST.type,
    }
    if params:
        declared["params"] = DYN
    if authorizer:
        declared["authorizer"] = AUTHORIZER_TYPE
        declared["authorizer.requestResource"] = RESOURCE_CHECK_TYPE
    if variables is not None:
        declared["variables"] = VARIABLES_TYPE
    chosen = (*libraries(version), PATCH_LIBRARY) if patches else libraries(version)
    return Environment(declared, chosen, PolicyTypes(variables or {}, patches))


def as_field(kind: Type) -> Type:
    """What is known of a variable's type: of anything but plain values, lists and maps nothing."""
    if kind.kind in ("list", "map"):
        return Type(kind.kind, kind.name, tuple(map(as_field, kind.parameters)))
    return kind if kind.kind in _PLAIN_KINDS else DYN


def typed_environment(
    object_type: Type, params_type: Type | None, variables: Mapping[str, Type], schemas: Iterable[TypeProvider]
) -> Environment:
    """The environment of a policy's expressions on objects whose types are known; no params where their type is None.

    As in kube-apiserver, what is requested cannot be asked about here: ``authorizer`` has no ``requestResource``.
    """
    declared: dict[str, Type] = {
        "object": object_type,
        "oldObject": object_type,
        "namespaceObject": _NAMESPACE.type,
        "request": _REQUEST.type,
        "authorizer": AUTHORIZER_TYPE,
        "variables": VARIABLES_TYPE,
    }
    if params_type is not None:
        declared["params"] = params_type
    return Environment(declared, libraries(CURRENT), PolicyTypes(variables, patches=False, schemas=schemas))


class PolicyError(Exception):
    """An expression cannot be used; `str()` is kube-apiserver's detail, `internal` if it is not the author's error."""

    def __init__(self, message: str, *, internal: bool = False) -> None:
        super().__init__(message)
        self.internal = internal


def compile_expression(environment: Environment, text: str, wanted: tuple[Type, ...]) -> Program:
    """Compile an expression that must have one of the wanted types; no types mean that any will do."""
    try:
        program = environment.compile(text)
    except CompileError as error:
        raise PolicyError(f"compilation failed: {error}") from None
    if wanted and program.type not in wanted:
        shown = [type_text(kind) for kind in wanted]
        target = shown[0] if len(shown) == 1 else f"one of [{' '.join(shown)}]"
        raise PolicyError(f"must evaluate to {target} but got {type_text(program.type)}")
    try:
        program.plan()
    except InstantiationError as error:
        raise PolicyError(f"program instantiation failed: {error}", internal=True) from None
    return program


def type_text(kind: Type) -> str:
    """A type as Go prints it, which differs from how the compiler's messages print it."""
    if not kind.parameters:
        return kind.name
    return f"{kind.name}({', '.join(map(type_text, kind.parameters))})"


class LazyVariables:
    """The value of `variables`: each is computed when first read, and an error is remembered like a value."""

    __slots__ = ("_compute", "_errors", "_values")

    def __init__(self, compute: Mapping[str, Callable[[], Any]]) -> None:
        self._compute = compute
        self._values: dict[str, Any] = {}
        self._errors: dict[str, Exception] = {}

    def cel_has(self, name: str) -> bool:
        return name in self._compute

    def cel_get(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        if name in self._errors:
            raise self._errors[name]
        try:
            value = self._values[name] = self._compute[name]()
        except Exception as error:
            self._errors[name] = error
            raise
        return value
