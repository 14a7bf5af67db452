import copy

import pytest

from pilothouse.apis import types
from pilothouse.apis.resource.conversion import CONVERTERS
from pilothouse.apis.resource.index import STRATEGIES
from pilothouse.apis.resource.resource_slice.capacity_validation import validate_policy
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.schema.decoding import decode

KINDS = {"resourceslices": "ResourceSlice", "deviceclasses": "DeviceClass", "devicetaintrules": "DeviceTaintRule"}
SLICE = {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n"}


def made(resource: str, spec: Object) -> Object:
    struct = types.struct(f"resource.v1.{KINDS[resource]}")
    obj = decode(struct, copy.deepcopy({"spec": spec}))[0]
    STRATEGIES[resource]().default(obj)
    assert decode(struct, obj)[0] == obj
    return obj


def errors_of(resource: str, spec: Object, old: Object | None = None) -> list[str]:
    strategy, obj = STRATEGIES[resource](), made(resource, spec)
    if old is None:
        return [str(error) for error in strategy.validate(Context(), obj)]
    return [str(error) for error in strategy.validate_update(Context(), obj, made(resource, old))]


PLACES = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
MEMBERS = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"devices": [{"name": "x", "attributes": {"a": {"int": 1}, "e.example/b": {"version": "1.2.3"}}}]}, []),
        ({"nodeName": None}, [f"spec: Required value: exactly one of {PLACES} is required"]),
        (
            {"allNodes": True, "pool": {"name": "p", "resourceSliceCount": 0}},
            [
                "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": exactly one of {PLACES} is required, but multiple '
                "fields are set",
            ],
        ),
        (
            {"devices": [{"name": "x", "attributes": {"a": {}, "b": {"int": 1, "bool": True}, "c": {"version": "1"}}}]},
            [
                'spec.devices[0].attributes[c].version: Invalid value: "1": must be a string compatible with '
                "semver.org "
                "spec 2.0.0",
                f'spec.devices[0].attributes[a]: Invalid value: "": must specify one of: {MEMBERS}',
                'spec.devices[0].attributes[b]: Invalid value: "{int, bool}": must specify exactly one of: ' + MEMBERS,
            ],
        ),
        (
            {"devices": [{"name": "x"}, {"name": "x", "allNodes": True}]},
            [
                "spec.devices[1]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
                'spec.devices[1]: Duplicate value: "x"',
            ],
        ),
        (
            {"devices": [{"name": "x", "taints": [{"key": "k", "effect": "Odd"}], "consumesCounters": [{}]}]},
            [
                "spec.devices[0].consumesCounters[0].counterSet: Required value",
                "spec.devices[0].consumesCounters[0].counters: Required value",
                'spec.devices[0].taints[0].effect: Unsupported value: "Odd": supported values: "NoExecute", '
                '"NoSchedule", '
                '"None"',
            ],
        ),
        (
            {"devices": [{"name": "x", "capacity": {"m": {"value": "1", "requestPolicy": {}}}}]},
            ["spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
        ),
        (
            {"devices": [{"name": "x", "bindingConditions": ["a", "a"]}]},
            [
                'spec.devices[0].bindingConditions[1]: Duplicate value: "a"',
                "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are "
                "required to "
                "use bindingConditions",
            ],
        ),
        (
            {"devices": [{"name": str(n)} for n in range(129)]},
            ["spec.devices: Too many: 129: must have at most 128 items"],
        ),
        (
            {"sharedCounters": [{"name": "s", "counters": {"A": {"value": "1"}}}]},
            [
                'spec.sharedCounters[0].counters: Invalid value: "A": a lowercase RFC 1123 label must '
                "consist of lower case "
                "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
                "'my-name',  or "
                "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ],
        ),
    ],
)
def test_slices(change: Object, expected: list[str]) -> None:
    assert errors_of("resourceslices", {**SLICE, **change}) == expected


def test_driver_pool_and_node_of_a_slice_never_change() -> None:
    changed = {"driver": "e", "pool": {"name": "q", "resourceSliceCount": 1}, "nodeName": "m"}
    assert errors_of("resourceslices", changed, SLICE) == [
        'spec.pool.name: Invalid value: "q": field is immutable',
        'spec.driver: Invalid value: "e": field is immutable',
        'spec.nodeName: Invalid value: "m": field is immutable',
    ]


def test_selectors_of_slices() -> None:
    strategy = STRATEGIES["resourceslices"]()
    assert strategy.fields(made("resourceslices", SLICE)) == {
        "spec.nodeName": "n",
        "spec.driver": "d",
        "spec.pool.name": "p",
    }
    with pytest.raises(ValueError, match=r"field label not supported for .*, Kind=ResourceSlice: x"):
        strategy.convert_field("x", "")


def test_upper_case_drivers_earn_a_warning() -> None:
    obj = made("resourceslices", {**SLICE, "driver": "D"})
    assert STRATEGIES["resourceslices"]().warnings_on_create(Context(), obj) == [
        'spec.driver: driver names should be lowercase; "D" contains uppercase characters'
    ]


def test_older_slices_convert_there_and_back() -> None:
    devices = [{"name": "x", "basic": {"attributes": {"a": {"int": 1}}}}, {"name": "y", "basic": {}}]
    body = decode(types.struct("resource.v1beta1.ResourceSlice"), {"spec": {**SLICE, "devices": devices}})[0]
    to_hub, from_hub = CONVERTERS["v1beta1", "resourceslices"]
    hub = to_hub(body)
    assert hub["spec"]["devices"] == [{"name": "x", "attributes": {"a": {"int": 1}}}, {"name": "y"}]
    assert from_hub(hub) == body


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        (
            {"selectors": [{"cel": {"expression": "device.driver"}}]},
            [
                'spec.selectors[0].cel.expression: Invalid value: "device.driver": must evaluate to bool or the unknown'
                " type, not string"
            ],
        ),
        (
            {"selectors": [{"cel": {"expression": "x" * 10241}}]},
            ["spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes"],
        ),
        (
            {"extendedResourceName": "kubernetes.io/x"},
            ['spec.extendedResourceName: Invalid value: "kubernetes.io/x": must not have "kubernetes.io/" domain'],
        ),
        ({"config": [{}]}, ["spec.config[0].opaque: Required value"]),
    ],
)
def test_device_classes(spec: Object, expected: list[str]) -> None:
    assert errors_of("deviceclasses", spec) == expected


def test_taint_rules() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    assert errors_of("devicetaintrules", {"taint": taint, "deviceSelector": {"driver": "d"}}) == []
    found = errors_of("devicetaintrules", {"taint": {"key": "", "value": "!"}, "deviceSelector": {"pool": ""}})
    assert found[0] == "spec.deviceSelector.pool: Required value"
    assert found[-1] == "spec.taint.effect: Required value"


def test_a_changed_effect_counts_from_now_on() -> None:
    strategy = STRATEGIES["devicetaintrules"]()
    taint = {"key": "k", "effect": "NoSchedule", "timeAdded": "2029-01-01T00:00:00Z"}
    obj = made("devicetaintrules", {"taint": {**taint, "effect": "NoExecute"}})
    strategy.prepare_for_update(Context(now="2030-01-01T00:00:00Z"), obj, made("devicetaintrules", {"taint": taint}))
    assert obj["spec"]["taint"]["timeAdded"] == "2030-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"default": "1", "validValues": ["1", "2"]}, []),
        ({"validValues": ["1"]}, ["p.default: Required value: required when validValues is defined"]),
        (
            {"default": "3", "validValues": ["2", "1", "20"]},
            [
                'p.validValues[1]: Invalid value: "1": values must be sorted in ascending order',
                'p.validValues[2]: Invalid value: "20": option is larger than capacity value: 10',
                'p.validValues: Invalid value: "3": default value is not valid according to the requestPolicy',
            ],
        ),
        ({"default": "2", "validRange": {"min": "1", "max": "9", "step": "1"}}, []),
        ({"default": "500m", "validRange": {"min": "250m", "step": "250m"}}, []),
        (
            {"default": "2", "validRange": {"min": "1", "max": "8", "step": "2"}},
            [
                'p.validRange.step: Invalid value: "2": value is not a multiple of a given step (2) from (1)',
                'p.validRange.step: Invalid value: "8": value is not a multiple of a given step (2) from (1)',
            ],
        ),
        (
            {"default": "0", "validRange": {"min": "1", "max": "11"}},
            [
                'p.validRange.default: Invalid value: "0": default is less than min: 1',
                'p.validRange.max: Invalid value: "11": max is larger than capacity value: 10',
            ],
        ),
    ],
)
def test_policies_of_shared_capacity(policy: Object, expected: list[str]) -> None:
    errs: list[FieldError] = []
    validate_policy("10", policy, Path("p"), errs)
    assert [str(error) for error in errs] == expected


@pytest.mark.parametrize(
    ("policy", "whole", "parts"),
    [
        ({"default": "1", "validValues": ["500m", "1"]}, ['p.validValues[1]: Duplicate value: "1"'], []),
        ({"default": "750m", "validRange": {"min": "250m", "step": "500m"}}, [], []),
        ({"default": "600m", "validRange": {"min": "250m", "step": "500m"}}, [], [
            'p.validRange.step: Invalid value: "600m": value is not a multiple of a given step (500m) from (250m)',
        ]),
        ({"default": "1", "validRange": {"min": "100u"}}, [], [
            'p.validRange.min: Invalid value: "100u": value cannot be represented as a milli value',
        ]),
    ],
)  # fmt: skip
def test_capacity_in_parts_is_a_feature(policy: Object, whole: list[str], parts: list[str]) -> None:
    for fractions, expected in ((False, whole), (True, parts)):
        errs: list[FieldError] = []
        validate_policy("10", policy, Path("p"), errs, fractions=fractions)
        assert [str(error) for error in errs] == expected
