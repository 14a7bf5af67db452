import copy

import pytest

from pilothouse.apis import types
from pilothouse.apis.admissionregistration.endpoints import validate_service, validate_url
from pilothouse.apis.admissionregistration.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.schema.decoding import decode

KINDS = {
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
}
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://host/path"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [RULE],
}


def made(hooks: list[Object], resource: str = "validatingwebhookconfigurations", name: str = "c") -> Object:
    struct = types.struct(f"admissionregistration.v1.{KINDS[resource]}")
    obj = decode(struct, copy.deepcopy({"metadata": {"name": name}, "webhooks": hooks}))[0]
    STRATEGIES[resource]().default(obj)
    assert decode(struct, obj)[0] == obj
    return obj


def errors_of(*hooks: Object, old: list[Object] | None = None) -> list[str]:
    strategy = STRATEGIES["validatingwebhookconfigurations"]()
    obj = made(list(hooks))
    if old is None:
        return [str(error) for error in strategy.validate(Context(), obj)]
    return [str(error) for error in strategy.validate_update(Context(), obj, made(old))]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"sideEffects": None}, ["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
        (
            {"sideEffects": "Some", "timeoutSeconds": 31},
            [
                'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ],
        ),
        (
            {"admissionReviewVersions": ["v9", "v9"]},
            [
                'webhooks[0].admissionReviewVersions[1]: Invalid value: "v9": duplicate version',
                'webhooks[0].admissionReviewVersions: Invalid value: ["v9","v9"]: must include at least one of '
                "v1, v1beta1",
            ],
        ),
        (
            {"clientConfig": {}},
            ["webhooks[0].clientConfig: Required value: exactly one of url or service is required"],
        ),
        (
            {
                "rules": [
                    {
                        "operations": ["*", "CREATE"],
                        "apiGroups": ["*", "a"],
                        "apiVersions": [""],
                        "resources": ["pods/*", "pods/log", "*", "x"],
                    }
                ]
            },
            [
                'webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not '
                "specify other operations",
                'webhooks[0].rules[0].apiGroups: Invalid value: ["*","a"]: if \'*\' is present, must not '
                "specify other API groups",
                "webhooks[0].rules[0].apiVersions[0]: Required value",
                "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must "
                "not specify pods/log",
                'webhooks[0].rules[0].resources: Invalid value: ["pods/*","pods/log","*","x"]: if \'*\' is '
                "present, must not specify other resources without subresources",
            ],
        ),
        (
            {
                "matchConditions": [
                    {"name": "a b", "expression": " "},
                    {"name": "c", "expression": "true"},
                    {"name": "c", "expression": "false"},
                ]
            },
            [
                "webhooks[0].matchConditions[0].expression: Required value",
                'webhooks[0].matchConditions[0].name: Invalid value: "a b": name part must consist of '
                "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                'webhooks[0].matchConditions[2].name: Duplicate value: "c"',
            ],
        ),
    ],
)
def test_errors(change: Object, expected: list[str]) -> None:
    assert errors_of({**HOOK, **change}) == expected


def test_what_an_older_server_let_in_may_stay() -> None:
    old = [{**HOOK, "sideEffects": "Some", "admissionReviewVersions": ["v9"]}, {**HOOK, "sideEffects": "Unknown"}]
    assert len(errors_of(*old)) == 4
    assert errors_of(*old, old=old) == []


def test_names_of_static_configurations_are_reserved() -> None:
    strategy = STRATEGIES["mutatingwebhookconfigurations"]()
    obj = made([HOOK], "mutatingwebhookconfigurations", "a.static.k8s.io")
    [found] = strategy.validate(Context(), obj)
    assert str(found).startswith(
        'metadata.name: Invalid value: "a.static.k8s.io": names ending with ".static.k8s.io" are'
    )
    assert strategy.validate_update(Context(), obj, obj) == []
    assert len(strategy.warnings_on_update(Context(), obj, obj)) == 1


def test_defaults() -> None:
    hook = {**HOOK, "clientConfig": {"service": {"name": "s", "namespace": "n"}}}
    [full] = made([hook], "mutatingwebhookconfigurations")["webhooks"]
    assert full["clientConfig"]["service"]["port"] == 443
    assert full["rules"][0]["scope"] == "*"
    assert (full["failurePolicy"], full["matchPolicy"], full["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert (full["namespaceSelector"], full["objectSelector"], full["reinvocationPolicy"]) == ({}, {}, "Never")


def test_rules_about_reviews_earn_a_warning() -> None:
    rule = {**RULE, "apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"]}
    strategy = STRATEGIES["validatingwebhookconfigurations"]()
    assert strategy.warnings_on_create(Context(), made([{**HOOK, "rules": [RULE, rule]}])) == [
        "webhooks[0].rules[1]: subjectaccessreviews.authorization.k8s.io is excluded from admission webhooks; "
        "this rule will have no effect"
    ]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://host", []),
        ("https://[::1]:8080/a", []),
        (
            "http://host",
            ["u: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"],
        ),
        ("https://", ['u: Invalid value: "": host must be specified; desired format: https://host[/path]']),
        ("https://a:b@host", ['u: Invalid value: "a:b": user information is not permitted in the URL']),
        ("https://host#f", ['u: Invalid value: "f": fragments are not permitted in the URL']),
        ("https://host?q=1", ['u: Invalid value: "q=1": query parameters are not permitted in the URL']),
        (
            "https://host:x",
            [
                'u: Required value: url must be a valid URL: parse "https://host:x": invalid port ":x" after '
                "host; desired format: https://host[/path]"
            ],
        ),
        (
            "https://host/%zz",
            [
                'u: Required value: url must be a valid URL: parse "https://host/%zz": invalid URL escape '
                '"%zz"; desired format: https://host[/path]'
            ],
        ),
    ],
)
def test_urls(url: str, expected: list[str]) -> None:
    errs: list[FieldError] = []
    validate_url(Path("u"), url, errs)
    assert [str(error) for error in errs] == expected


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ({"name": "a", "namespace": "b", "port": 1, "path": "/x/y/"}, []),
        # kube-apiserver names the wrong field.
        ({"name": "a", "port": 1}, ["s.name: Required value"]),
        (
            {"name": "a", "namespace": "b", "port": 0},
            ["s.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"],
        ),
        (
            {"name": "a", "namespace": "b", "port": 1, "path": "//"},
            ['s.path: Invalid value: "//": segment[0] may not be empty'],
        ),
        (
            {"name": "a", "namespace": "b", "port": 1, "path": "/a//b"},
            ['s.path: Invalid value: "/a//b": segment[1] may not be empty'],
        ),
    ],
)
def test_services(service: Object, expected: list[str]) -> None:
    errs: list[FieldError] = []
    validate_service(Path("s"), service, errs)
    assert [str(error) for error in errs] == expected


def test_a_path_that_begins_with_half_a_letter() -> None:
    errs: list[FieldError] = []
    validate_service(Path("s"), {"name": "a", "namespace": "b", "port": 1, "path": "é"}, errs)
    assert str(errs[0]) == "s.path: Invalid value: \"é\": must start with a '/'"
    assert str(errs[1]).startswith('s.path: Invalid value: "é": segment[0]: a lowercase RFC 1123 subdomain')
