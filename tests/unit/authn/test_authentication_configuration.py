import pytest

from pilothouse.authn.authentication_configuration import TrustedIssuer, issuer_from_flags, parse_configuration

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
GOOD = """
jwt:
- issuer:
    url: https://a
    discoveryURL: https://b/doc
    audiences: [x, "y"]
    audienceMatchPolicy: MatchAny
  claimMappings:
    username: {claim: sub, prefix: "u:"}
    groups: {claim: groups, prefix: ""}
    uid: {claim: oid}
  claimValidationRules:
  - {claim: hd, requiredValue: x.org}
anonymous:
  enabled: true
  conditions:
  - path: /healthz
"""


def test_good_file():
    found = parse_configuration((HEAD + GOOD).encode())
    assert found.issuers == (
        TrustedIssuer("https://a", ("x", "y"), "sub", "u:", "groups", "", "oid", {"hd": "x.org"}, "https://b/doc"),
    )
    assert (found.anonymous, found.anonymous_paths) == (True, ("/healthz",))
    assert parse_configuration(HEAD.encode()).anonymous is None


def entry(**changes):
    parts = {
        "issuer": "{url: https://a, audiences: [x]}",
        "claimMappings": "{username: {claim: sub, prefix: ''}}",
        **changes,
    }
    return "jwt:\n- " + "\n  ".join(f"{key}: {value}" for key, value in parts.items())


PREFIX = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (entry(issuer="{audiences: [x]}"), "jwt[0].issuer.url: Required value"),
        (
            entry(issuer="{url: 'http://u:p@a?q#f', audiences: [x]}"),
            '[jwt[0].issuer.url: Invalid value: "http://u:p@a?q#f": URL scheme must be https, '
            'jwt[0].issuer.url: Invalid value: "http://u:p@a?q#f": URL must not contain a username or password, '
            'jwt[0].issuer.url: Invalid value: "http://u:p@a?q#f": URL must not contain a query, '
            'jwt[0].issuer.url: Invalid value: "http://u:p@a?q#f": URL must not contain a fragment]',
        ),
        (
            entry(issuer="{url: 'https://a:x', audiences: [x]}"),
            'jwt[0].issuer.url: Invalid value: "https://a:x": parse "https://a:x": invalid port ":x" after host',
        ),
        (
            entry(issuer="{url: https://a, audiences: [x], certificateAuthority: none}"),
            'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or '
            "ECDSA certificates",
        ),
        (
            entry(issuer="{url: https://a, audiences: [x], egressSelectorType: etcd}"),
            'jwt[0].issuer.egressSelectorType: Invalid value: "etcd": egress selector must be either controlplane or '
            "cluster",
        ),
        (
            entry(issuer="{url: https://a, audiences: [x], egressSelectorType: cluster}"),
            'oidc: egress lookup required with egress selector type "cluster"',
        ),
        (
            entry(claimValidationRules="[{claim: a, expression: 'true'}, {claim: a}, {claim: a, message: m}]"),
            '[jwt[0].claimValidationRules[0]: Invalid value: "a": claim and expression can\'t both be set, '
            'jwt[0].claimValidationRules[2].message: Invalid value: "m": may not be specified when claim is set, '
            'jwt[0].claimValidationRules[2].claim: Duplicate value: "a"]',
        ),
        (
            entry(
                claimMappings="{username: {expression: claims.email}, groups: {claim: g}}",
                userValidationRules="[{expression: ''}]",
            ),
            f"[jwt[0].claimMappings.groups.prefix: Required value: {PREFIX}, "
            'jwt[0].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be '
            "used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or "
            "claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression, "
            "jwt[0].userValidationRules[0].expression: Required value]",
        ),
        (
            entry(issuer="{url: https://sa, audiences: [x]}"),
            'jwt[0].issuer.url: Invalid value: "https://sa": URL must not overlap with disallowed issuers: [https://sa]',
        ),
        (
            entry(issuer="{url: https://a, discoveryURL: https://a/, audiences: [x]}"),
            'jwt[0].issuer.discoveryURL: Invalid value: "https://a/": discoveryURL must be different from URL',
        ),
        (
            entry(issuer="{url: https://a, audiences: [x, x]}"),
            '[jwt[0].issuer.audiences[1]: Duplicate value: "x", jwt[0].issuer.audienceMatchPolicy: Invalid value: "": '
            "audienceMatchPolicy must be MatchAny for multiple audiences]",
        ),
        (
            entry(issuer="{url: https://a}"),
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
        (
            entry(claimMappings="{username: {expression: claims.sub, prefix: x}}"),
            'jwt[0].claimMappings.username.prefix: Invalid value: "x": may not be specified when expression is set',
        ),
        (entry(claimMappings="{}"), "jwt[0].claimMappings.username: Required value: claim or expression is required"),
        (
            entry(claimMappings="{username: {claim: sub}}"),
            f"jwt[0].claimMappings.username.prefix: Required value: {PREFIX}",
        ),
        (
            entry(userValidationRules="[{expression: x}]"),
            'jwt[0].userValidationRules[0].expression: Invalid value: "x": compilation failed: ERROR: <input>:1:1: '
            "undeclared reference to 'x' (in container '')\n | x\n | ^",
        ),
        (
            entry(claimValidationRules="[{}, {claim: a, message: m}]"),
            "[jwt[0].claimValidationRules[0]: Required value: claim or expression is required, "
            'jwt[0].claimValidationRules[1].message: Invalid value: "m": may not be specified when claim is set]',
        ),
        (entry(issuers="{}"), 'strict decoding error: unknown field "jwt[0].issuers"'),
        (
            "anonymous: {enabled: false, conditions: [{path: /x}]}",
            'anonymous.conditions: Invalid value: [{"path":"/x"}]: enabled should be set to true when conditions are '
            "defined",
        ),
        (
            "jwt: 7",
            "json: cannot unmarshal number into Go struct field AuthenticationConfiguration.jwt of type "
            "[]v1.JWTAuthenticator",
        ),
        (
            entry(issuer="{url: https://a, audiences: [y]}"),
            "json: cannot unmarshal bool into Go struct field Issuer.jwt.issuer.audiences of type string",
        ),
        (
            "anonymous: {enabled: 'yes'}",
            "json: cannot unmarshal string into Go struct field AnonymousAuthConfig.anonymous.enabled of type bool",
        ),
    ],
)
def test_errors(text, error):
    with pytest.raises(ValueError) as caught:
        parse_configuration((HEAD + text).encode(), ["https://sa"])
    assert str(caught.value) == error


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"kind: X", b"kind: AuthenticationConfiguration\napiVersion: v9", b"{", b"a: b"]
)
def test_files_that_are_something_else(data):
    with pytest.raises(ValueError):
        parse_configuration(data)


@pytest.mark.parametrize(
    ("claim", "given", "prefix"),
    [("sub", "", "https://a#"), ("email", "", ""), ("sub", "-", ""), ("sub", "x:", "x:"), ("email", "x:", "x:")],
)
def test_prefix_of_the_flags(claim, given, prefix):
    assert issuer_from_flags("https://a", "c", claim, given).username_prefix == prefix
