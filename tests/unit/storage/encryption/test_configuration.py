import base64

import orjson
import pytest

from pilothouse.storage.encryption.configuration import KMS, Provider, parse_configuration

SECRET = base64.b64encode(bytes(32)).decode()
AES = {"aescbc": {"keys": [{"name": "a", "secret": SECRET}]}}
KEYED = {"keys": [{"name": "a", "secret": SECRET}]}
SERVICE = {"name": "k", "endpoint": "unix:///run/kms.sock", "apiVersion": "v2"}


def document(*rules):
    return orjson.dumps(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": resources, "providers": providers} for resources, providers in rules],
        }
    )


def test_a_whole_configuration():
    rules = parse_configuration(
        document(
            (["secrets", "pandas.example.com"], [AES, {"identity": {}}]),
            (["*.apps"], [{"kms": {**SERVICE, "timeout": "1s500ms"}}]),
            (["*.*"], [{"secretbox": KEYED}]),
        )
    )
    assert rules[0].resources == (("", "secrets"), ("example.com", "pandas"))
    assert [provider.type for provider in rules[0].providers] == ["aescbc", "identity"]
    assert rules[0].providers[0].keys[0].secret == bytes(32)
    assert rules[1].providers == (Provider("kms", kms=KMS("k", "unix:///run/kms.sock", 1.5)),)
    assert rules[2].resources == (("*", "*"),)


@pytest.mark.parametrize(
    ("resources", "provider", "error"),
    [
        ([], AES, "resources[0].resources: Required value: at least one resources[0].resources is required"),
        (["*"], AES, "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"),
        (["Secrets"], AES, "resource name should not contain capital letters"),
        (["secrets", "secrets"], AES, "the same resource cannot be specified multiple times"),
        (["secrets", "*."], AES, "using overlapping resources such as 'secrets' and '*.'"),
        (["secrets", "*.*"], AES, "using overlapping resources"),
        (["*.events.k8s.io"], AES, "Use 'events' instead in the config file"),
        (["ingresses.extensions"], AES, "'extensions' group has been removed and cannot be used for encryption"),
        (["secrets.*"], AES, "encrypting the same resource across groups is not supported"),
        (["serviceipallocations"], AES, "resources which do not have REST API/s cannot be encrypted"),
        (["secrets"], {}, "provider does not contain any of the expected providers"),
        (["secrets"], {**AES, "identity": {}}, "more than one provider specified in a single element"),
        (["secrets"], {"aesgcm": {}}, "resources[0].providers[0].aesgcm.keys: Required value"),
        (["secrets"], {"aesgcm": {"keys": [{}]}}, "keys[0].name: Required value: name is a mandatory field for a key"),
        (["secrets"], {"aesgcm": {"keys": [{"name": "a"}]}}, "keys[0].secret: Required value"),
        (
            ["secrets"],
            {"aesgcm": {"keys": [{"name": "a", "secret": "c2hvcnQ="}]}},
            'keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 5, expected one of '
            "[16 24 32]",
        ),
        (["secrets"], {"aescbc": {"keys": [{"name": "a", "secret": "not base64!"}]}}, "secrets must be base64 encoded"),
        (["secrets"], {"kms": {**SERVICE, "apiVersion": "v1"}}, "KMSv1 is deprecated and will only receive security"),
        (["secrets"], {"kms": {"name": "a:b", "endpoint": "unix:///x"}}, "Set --feature-gates=KMSv1=true to use"),
        (["secrets"], {"kms": {**SERVICE, "apiVersion": "v1", "cachesize": 0}}, "positive value, or negative to disab"),
        (["secrets"], {"kms": {**SERVICE, "apiVersion": "v3"}}, "only v1 and v2 are supported"),
        (["secrets"], {"kms": {**SERVICE, "endpoint": "tcp://x"}}, 'unsupported scheme "tcp" for KMS provider'),
        (["secrets"], {"kms": {**SERVICE, "endpoint": ""}}, "endpoint is a mandatory field for a kms"),
        (["secrets"], {"kms": {**SERVICE, "name": "a:b"}}, "invalid KMS provider name a:b, must not contain ':'"),
        (["secrets"], {"kms": {**SERVICE, "timeout": "-1s"}}, "timeout should be a positive value"),
        (["secrets"], {"kms": {**SERVICE, "cachesize": 1}}, "cachesize is not supported in v2"),
        (["secrets"], {"rot13": {}}, 'unknown field "resources[0].providers[0].rot13"'),
    ],
)
def test_errors(resources, provider, error):
    with pytest.raises(ValueError) as caught:
        parse_configuration(document((resources, [provider])))
    assert error in str(caught.value)
    assert SECRET not in str(caught.value)


def test_masked_rules():
    with pytest.raises(ValueError, match=r'resource "secrets" is masked by earlier rule "\*\."'):
        parse_configuration(document((["*."], [AES]), (["secrets"], [AES])))


def test_two_services_of_one_name():
    with pytest.raises(ValueError, match="duplicate KMS provider name k"):
        parse_configuration(document((["secrets"], [{"kms": SERVICE}]), (["configmaps"], [{"kms": SERVICE}])))


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"kind: EncryptionConfiguration", b"a: [", b'{"kind":"Pod"}'])
def test_what_is_no_configuration(data):
    with pytest.raises(ValueError):
        parse_configuration(data)
