import pytest

from pilothouse.authn.authentication_configuration import parse_configuration
from pilothouse.authn.authenticator import InvalidCredentials
from pilothouse.authn.claim_expressions import (
    BadExpression,
    ClaimExpressions,
    Rule,
    claims_value,
    compile_claims,
    compile_user,
    uses_claim,
)
from pilothouse.machinery.user import User

CLAIMS = claims_value(
    {"sub": "jane", "roles": ["a", "", "b"], "level": 3, "deep": {"x": [1]}, "email": "j@x", "email_verified": True}
)


@pytest.mark.parametrize(
    ("text", "name"),
    [("claims.sub", "jane"), ("'x:' + claims.sub", "x:jane"), ("claims.?nick.orValue('none')", "none")],
)
def test_usernames(text, name):
    assert ClaimExpressions(username=compile_claims(text)).read_username(CLAIMS) == name


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("claims.level", "username claim expression must return a string"),
        ("''", "empty username via CEL expression is not allowed"),
        ("claims.none", "expression 'claims.none' resulted in error: no such key: none"),
    ],
)
def test_usernames_that_are_none(text, error):
    with pytest.raises(InvalidCredentials, match=error):
        ClaimExpressions(username=compile_claims(text)).read_username(CLAIMS)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("claims.roles", ("a", "b")),
        ("claims.sub", ("jane",)),
        ("''", ()),
        ("[]", ()),
        ("claims.?none.orValue(null)", ()),
        ("dyn(claims.roles).filter(r, r != '').map(r, 'g:' + r)", ("g:a", "g:b")),
    ],
)
def test_groups(text, groups):
    assert ClaimExpressions(groups=compile_claims(text)).read_groups(CLAIMS) == groups


def test_groups_of_other_things():
    with pytest.raises(InvalidCredentials, match="expression must return a string or a list of strings"):
        ClaimExpressions(groups=compile_claims("[claims.level]")).read_groups(CLAIMS)


def test_uid_and_extra():
    made = ClaimExpressions(
        uid=compile_claims("claims.sub"),
        extra={"example.org/a": compile_claims("claims.roles"), "example.org/b": compile_claims("''")},
    )
    assert made.read_uid(CLAIMS) == "jane"
    assert made.read_extra(CLAIMS) == {"example.org/a": ("a", "b")}


def test_rules():
    made = ClaimExpressions(
        claim_rules=(Rule(compile_claims("claims.level > 2", condition=True), "too low"),),
        user_rules=(Rule(compile_user("!user.username.startsWith('system:')"), "reserved"),),
    )
    made.check_claims(CLAIMS)
    with pytest.raises(InvalidCredentials, match=r"validation expression 'claims.level > 2' failed: too low"):
        made.check_claims({"level": 1.0})
    made.check_user(User("jane"))
    with pytest.raises(InvalidCredentials, match="failed: reserved"):
        made.check_user(User("system:admin"))


@pytest.mark.parametrize(
    ("compiling", "error"),
    [
        (lambda: compile_claims("claims.sub +"), "compilation failed: ERROR"),
        (lambda: compile_claims("user.username"), "undeclared reference to 'user'"),
        (lambda: compile_claims("claims.sub", condition=True), "must evaluate to bool"),
        (lambda: compile_user("user.password == ''"), "undefined field 'password'"),
    ],
)
def test_what_does_not_compile(compiling, error):
    with pytest.raises(BadExpression, match=error):
        compiling()


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("claims.email", True),
        ("claims.?email.orValue('x')", True),
        ("dyn(claims.roles).exists(r, r == claims.email)", True),
        ("{'a': [claims.email]}", True),
        ("claims.emails", False),
        ("claims.deep.email", False),
        ("'email'", False),
    ],
)
def test_which_claims_are_used(text, used):
    assert uses_claim(compile_claims(text), "email") is used


def configuration(username, more=""):
    return parse_configuration(
        f"""
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {{url: "https://issuer", audiences: [a]}}
  claimMappings: {{username: {{expression: "{username}"}}{more}}}
""".encode()
    )


def test_the_file_is_compiled():
    (issuer,) = configuration("claims.sub", ', extra: [{key: "example.org/x", valueExpression: "claims.sub"}]').issuers
    assert issuer.expressions.read_username(CLAIMS) == "jane"
    assert issuer.expressions.read_extra(CLAIMS) == {"example.org/x": ("jane",)}


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (', extra: [{key: x, valueExpression: "claims.sub"}]', "must be a domain-prefixed path"),
        (', extra: [{key: "a.k8s.io/x", valueExpression: "claims.sub"}]', "reserved for Kubernetes use"),
        (', extra: [{key: "example.org/X", valueExpression: "claims.sub"}]', "must be lowercase"),
        (', extra: [{key: "example.org/x"}]', "valueExpression: Required value"),
        (', uid: {expression: "1 +"}', "claimMappings.uid.expression: Invalid value"),
        (', groups: {expression: "claims.x", claim: x}', "claim and expression can't both be set"),
    ],
)
def test_errors_of_the_file(more, error):
    with pytest.raises(ValueError) as caught:
        configuration("claims.sub", more)
    assert error in str(caught.value)


def test_unverified_addresses_are_nobodys_names():
    with pytest.raises(ValueError, match=r"claims.email_verified must be used"):
        configuration("claims.email")
    assert configuration("claims.email_verified ? claims.email : ''").issuers
