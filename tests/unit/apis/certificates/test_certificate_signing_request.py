import base64
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilothouse.apis import types
from pilothouse.apis.certificates.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

strategy = STRATEGIES["certificatesigningrequests"]()
approval = strategy.subresources["approval"]()
status = strategy.subresources["status"]()
NOW = "2030-01-02T03:04:05Z"
THEN = "2029-01-02T03:04:05Z"


@cache
def request(*, broken: bool = False) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    der = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(name)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )
    if broken:
        der = der.replace(b"jane", b"joan")
    body = base64.encodebytes(der).decode()
    pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{body}-----END CERTIFICATE REQUEST-----\n"
    return base64.b64encode(pem.encode()).decode()


def made(spec: Object | None = None, conditions: list[Object] | None = None, certificate: str = "") -> Object:
    body = {
        "spec": {"request": request(), "signerName": "example.com/s", "usages": ["client auth"], **(spec or {})},
        "status": {"conditions": conditions or [], "certificate": certificate},
    }
    return decode(types.struct("certificates.v1.CertificateSigningRequest"), body)[0]


def condition(kind: str, value: str = "True", **more: str) -> Object:
    return {"type": kind, "status": value, **more}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"usages": []}, ["spec.usages: Required value"]),
        ({"usages": ["any", "any"]}, ['spec.usages[1]: Duplicate value: "any"']),
        (
            {"signerName": "kubernetes.io/legacy-unknown"},
            [
                'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not '
                "allowed via "
                "this API version"
            ],
        ),
        ({"signerName": ""}, ["spec.signerName: Required value"]),
        (
            {"expirationSeconds": 599},
            [
                "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds "
                "(10 minutes)"
            ],
        ),
        (
            {"request": b64("junk")},
            ['spec.request: Invalid value: "anVuaw==": PEM block type must be CERTIFICATE REQUEST'],
        ),
        ({"request": ""}, ['spec.request: Invalid value: "": PEM block type must be CERTIFICATE REQUEST']),
        ({"request": None}, ["spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST"]),
    ],
)
def test_errors_of_new_requests(spec: Object, expected: list[str]) -> None:
    assert [str(error) for error in strategy.validate(Context(), made(spec))] == expected


SIGNED_WITH_SHA1 = (
    "MIHFMG4CAQAwDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNLTswwlO2pqVQ4Ys1Ta+GLV7pnxBxP3ZJrZ"
    "vlu//i9W4+6h4raIaatgnMsq6q+PrTyv2cD0Y1iOmxr+np2e7AigADAJBgcqhkjOPQQBA0gAMEUCICpDfApJQHcZNkmEWdHTzKyK"
    "DAq1LUe9uzVgixFdUa1EAiEAvE4t0A0XccnEDwZ1CRhA9Owlj01pS0dflsLvxLSJCJI="
)
SIGNED_WITH_MD5 = (
    "MIIBSzCBtQIBADAMMQowCAYDVQQDDAFhMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDVPS+OI0mijDHUOSyu5jw0UiL2IJu3"
    "ZI6ODVEwgOaDD3mTtZ7vda+r3ZMihZAWDFu/S60Ds1l83NiyJk3Jc4jVcMCjq8dL9Kkbq5txJgLCsr9yqOPpkuXaP6NNwvWzQ8jw"
    "GJZau9djenM0ZpMDWFKzuA0sEHdwbrZ3NAk6To2hmwIDAQABoAAwDQYJKoZIhvcNAQEEBQADgYEAJnJMbBfpxLBX7EA7sdTysesN"
    "NZ2NpEGcnmJzddM4r8Og9xEpv7JTwQ+AqVa0IPyHGSfpIkHklRGgtSXDENHC9l4l1IQjuG52pJRZLXq5Wf7KHFgVp4sYK1kQqWr8"
    "fni4zmpqyuDG/PlMoK5fHHEm8/Pffi+/O3kO5HtYyfAPm2c="
)


@pytest.mark.parametrize(
    ("der", "expected"),
    [(SIGNED_WITH_SHA1, []), (SIGNED_WITH_MD5, ["x509: cannot verify signature: insecure algorithm MD5-RSA"])],
)
def test_old_hashes(der: str, expected: list[str]) -> None:
    pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{der}\n-----END CERTIFICATE REQUEST-----\n"
    assert [error.detail for error in strategy.validate(Context(), made({"request": b64(pem)}))] == expected


def test_a_request_is_signed_with_its_own_key() -> None:
    [found] = strategy.validate(Context(), made({"request": request(broken=True)}))
    assert found.detail == "x509: ECDSA verification failure"


def test_who_asks_is_written_by_the_server() -> None:
    obj = made({"username": "root", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]}}, [condition("Approved")])
    context = Context(user="jane", user_uid="", groups=("g",), user_extra={"e": ["f"]})
    strategy.prepare_for_create(context, obj)
    kept = {key: obj["spec"].get(key) for key in ("username", "uid", "groups", "extra")}
    assert kept == {"username": "jane", "uid": None, "groups": ["g"], "extra": {"e": ["f"]}}
    assert obj["status"] == {}


def test_updates_change_neither_spec_nor_status() -> None:
    old, obj = made(), made({"usages": ["any"]}, [condition("Approved")])
    strategy.prepare_for_update(Context(), obj, old)
    assert obj == old


def test_approval_stamps_times_and_keeps_the_certificate() -> None:
    old = made(conditions=[condition("Failed", lastTransitionTime=THEN)], certificate=b64("c"))
    obj = made({"usages": []}, [condition("Failed"), condition("Approved")])
    approval.prepare_for_update(Context(now=NOW), obj, old)
    assert obj["spec"] == old["spec"]
    assert obj["status"]["certificate"] == b64("c")
    assert [c["lastTransitionTime"] for c in obj["status"]["conditions"]] == [THEN, NOW]
    assert [c["lastUpdateTime"] for c in obj["status"]["conditions"]] == [NOW, NOW]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([], [condition("Approved")], []),
        (
            [condition("Approved")],
            [],
            ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
        ),
        (
            [],
            [condition("Denied", "False")],
            ['status.conditions[0].status: Unsupported value: "False": supported values: "True"'],
        ),
        ([], [condition("Odd", "")], ["status.conditions[0].status: Required value"]),
        (
            [],
            [condition("Approved"), condition("Denied")],
            [
                'status.conditions: Invalid value: "{conditions[{\\"type\\": \\"Approved\\"}], conditions[{\\"type\\": '
                '\\"Denied\\"}]}": must specify at most one of: `conditions[{"type": "Approved"}]`, '
                '`conditions[{"type": "Denied"}]`'
            ],
        ),
        ([], [condition("A"), condition("A")], ['status.conditions[1].type: Duplicate value: "A"']),
    ],
)
def test_approval(before: list[Object], after: list[Object], expected: list[str]) -> None:
    found = approval.validate_update(Context(), made(conditions=after), made(conditions=before))
    assert [str(error) for error in found] == expected


def test_status_may_not_approve_and_gives_decisions_back_as_they_were() -> None:
    found = status.validate_update(Context(), made(conditions=[condition("Approved")]), made())
    assert [str(error) for error in found] == [
        'status.conditions: Forbidden: updates may not add a condition of type "Approved"'
    ]
    old = made(conditions=[condition("Approved", reason="yes", lastUpdateTime=THEN, lastTransitionTime=THEN)])
    obj = made(conditions=[condition("Approved", reason="no")])
    status.prepare_for_update(Context(now=NOW), obj, old)
    assert obj["status"]["conditions"] == old["status"]["conditions"]


def test_a_certificate_is_set_once_and_must_be_one() -> None:
    found = status.validate_update(Context(), made(certificate=b64("x")), made())
    assert [str(error) for error in found] == [
        'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'
    ]
    found = approval.validate_update(Context(), made(certificate=b64("x")), made(certificate=b64("y")))
    assert [str(error) for error in found] == ["status.certificate: Forbidden: updates may not set certificate content"]


def test_selectors_know_the_signer_but_no_namespace() -> None:
    assert strategy.fields(made()) == {"spec.signerName": "example.com/s"}
    with pytest.raises(ValueError, match=r"field label not supported: metadata\.namespace"):
        strategy.convert_field("metadata.namespace", "a")


def test_columns_tell_what_became_of_it() -> None:
    obj = made({"expirationSeconds": 86400, "username": "u"}, [condition("Approved"), condition("Failed")], b64("c"))
    cells = {column.name: column.cell(obj) for column in strategy.columns if column.name not in ("Name", "Age")}
    assert cells == {
        "SignerName": "example.com/s",
        "Requestor": "u",
        "RequestedDuration": "24h",
        "Condition": "Approved,Failed,Issued",
    }
