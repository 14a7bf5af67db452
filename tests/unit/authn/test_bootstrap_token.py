import base64

import pytest

from pilothouse.authn.bootstrap_token import BootstrapTokens
from pilothouse.machinery.user import User

NOW = 1_800_000_000
TOKEN = "abcdef.0123456789abcdef"
DATA = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}


class Objects:
    def __init__(self, data, type="bootstrap.kubernetes.io/token", **metadata):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        self.secret = {"metadata": {"name": "s", **metadata}, "type": type, "data": encoded}

    async def get(self, resource, namespace, name):
        assert (resource, namespace) == ("secrets", "kube-system")
        return self.secret if name == "bootstrap-token-abcdef" else None


async def authenticate(objects, token=TOKEN):
    return await BootstrapTokens(objects, lambda: NOW).authenticate_token(token, ())


@pytest.mark.parametrize(
    ("more", "groups"),
    [
        ({}, ("system:bootstrappers",)),
        ({"expiration": "2027-01-15T08:00:01Z"}, ("system:bootstrappers",)),
        (
            {"auth-extra-groups": "system:bootstrappers:z,system:bootstrappers:a:b"},
            ("system:bootstrappers", "system:bootstrappers:a:b", "system:bootstrappers:z"),
        ),
    ],
)
async def test_known_token(more, groups):
    assert (await authenticate(Objects({**DATA, **more}))).user == User("system:bootstrap:abcdef", groups=groups)


@pytest.mark.parametrize(
    "objects",
    [
        Objects({**DATA, "token-secret": "0123456789abcdeX"}),
        Objects({**DATA, "token-id": "other1"}),
        Objects({**DATA, "usage-bootstrap-authentication": "false"}),
        Objects({**DATA, "expiration": "2027-01-15T08:00:00Z"}),
        Objects({**DATA, "expiration": "soon"}),
        Objects({**DATA, "auth-extra-groups": "system:masters"}),
        Objects({**DATA, "auth-extra-groups": "system:bootstrappers:a,"}),
        Objects(DATA, type="Opaque"),
        Objects(DATA, deletionTimestamp="2027-01-15T08:00:00Z"),
        Objects({}),
    ],
)
async def test_unfit_secrets_are_no_opinion(objects):
    assert await authenticate(objects) is None


@pytest.mark.parametrize("token", ["", "abcdef", "abcdef.short", TOKEN.upper(), TOKEN + "\n", TOKEN.replace("a", "z")])
async def test_other_tokens_are_no_opinion(token):
    assert await authenticate(Objects(DATA), token) is None
