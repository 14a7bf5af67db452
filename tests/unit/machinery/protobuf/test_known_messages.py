import copy

import pytest

from pilothouse.apis import types
from pilothouse.machinery.protobuf.encoding import _Source, encode_message
from pilothouse.machinery.protobuf.known_messages import KnownMessages

STRUCT = types.struct("core.v1.PodSpec")


def spec(drawn, **more):
    mount = {"name": drawn, "mountPath": "/var/run/secrets", "readOnly": True}
    container = {"name": "main", "image": "nginx", "volumeMounts": [mount], "command": ["echo", f"<{drawn}>"]}
    return {"containers": [container], "volumes": [{"name": drawn, "emptyDir": {}}], **more}


class Counted:
    def __init__(self):
        self.encode, self.count = _Source(STRUCT).compile(), 0

    def __call__(self, value):
        self.count += 1
        return self.encode(value)


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [
        (spec("kube-api-access-abcde"), spec("kube-api-access-fghij"), 1),
        (spec("mine"), spec("mine"), 1),
        (spec("mine"), spec("other"), 2),
        (spec("kube-api-access-abcde"), spec("mine"), 2),
        # The node is put in anew, whatever it is.
        (spec("mine", nodeName="a"), spec("mine", nodeName="another-" + "x" * 200), 1),
        (spec("mine", nodeName="a"), spec("mine", nodeName="mine"), 1),
        (spec("kube-api-access-abcde", nodeName="a"), spec("kube-api-access-fghij", nodeName=""), 1),
        (
            spec("kube-api-access-abcde", nodeName="kube-api-access-abcde"),
            spec("kube-api-access-fghij", nodeName="b"),
            1,
        ),
        (spec("mine", hostname="h", nodeName="a"), spec("mine", hostname="i", nodeName="a"), 2),
        # The place of a key depends on what it is.
        (
            spec("kube-api-access-abcde", nodeSelector={"kube-api-access-abcde": "", "kube-api-access-bbbbb": ""}),
            spec("kube-api-access-ccccc", nodeSelector={"kube-api-access-ccccc": "", "kube-api-access-bbbbb": ""}),
            2,
        ),
        (
            spec("kube-api-access-abcde", nodeSelector={'xkube-api-access-abcde"': "", "xkube-api-access-b": ""}),
            spec("kube-api-access-ccccc", nodeSelector={'xkube-api-access-ccccc"': "", "xkube-api-access-b": ""}),
            2,
        ),
        # Too long to be kept.
        (spec("mine", hostname="x" * 20_000), spec("mine", hostname="x" * 20_000), 2),
        # No JSON.
        (spec("mine", priority=1 << 70), spec("mine", priority=1 << 70), 2),
    ],
)
def test_a_known_spec_is_written_as_if_it_were_not_known(first, second, written):
    counted = Counted()
    known = KnownMessages(counted)
    for value in (first, second):
        assert known(copy.deepcopy(value)) == counted.encode(value)
    assert counted.count == written


def test_few_are_kept():
    counted = Counted()
    known = KnownMessages(counted)
    for number in range(257):
        known(spec(f"volume-{number}"))
    known(spec("volume-256"))
    assert counted.count == 257
    known(spec("volume-0"))
    assert counted.count == 258


def test_specs_of_pods_are_remembered():
    for drawn in ("kube-api-access-abcde", "kube-api-access-fghij"):
        assert encode_message(STRUCT, spec(drawn)) == Counted()(spec(drawn))
    assert isinstance(STRUCT.derived["protobuf_encoder"], KnownMessages)
