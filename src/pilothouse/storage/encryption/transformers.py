"""From the configuration to the transformer of each key in the store.

Keys are matched to resources: built-in ones by the table, custom ones by their path, which starts with their group.
What has no API of its own (leases of servers, allocation ledgers) is never encrypted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from pilothouse.apis.resources import table
from pilothouse.storage.encryption.aes import AESCBC, AESGCM
from pilothouse.storage.encryption.configuration import KMS, GroupAndResource, Provider, Rule
from pilothouse.storage.encryption.kms import Envelope
from pilothouse.storage.encryption.metrics import EncryptionMetrics
from pilothouse.storage.encryption.secretbox import make_secretbox
from pilothouse.storage.encryption.transforming import Identity, Prefixed, Transformer

MakeEnvelope = Callable[[KMS], Envelope]
_NO_AES_KEY = "no matching key was found for the provided AES transformer"
_NO_SECRETBOX_KEY = "no matching key was found for the provided Secretbox transformer"


class Transformers:
    """The transformers of one configuration, and the key management services they use."""

    def __init__(
        self,
        rules: Sequence[Rule],
        root: str,
        make_envelope: MakeEnvelope,
        metrics: EncryptionMetrics | None = None,
    ) -> None:
        self.envelopes: list[Envelope] = []
        self._start = len(root) + 1
        chains: dict[GroupAndResource, list[tuple[bytes, Transformer]]] = {}
        for rule in rules:
            made = [self._make(provider, make_envelope) for provider in rule.providers]
            for resource in rule.resources:
                chains.setdefault(resource, []).extend(made)
        self._chains, self._metrics = chains, metrics or EncryptionMetrics()
        self._found: dict[str, Prefixed | None] = {}

    def find(self, key: str) -> Transformer | None:
        """The transformer for a key; None where values stay as they are."""
        first, _, rest = key[self._start :].partition("/")
        place = first if first in _built_in() else f"{first}/{rest.partition('/')[0]}"
        try:
            return self._found[place]
        except KeyError:
            found = self._found[place] = self._search(place)
            return found

    def _search(self, place: str) -> Prefixed | None:
        resource = _built_in().get(place)
        if resource is None:
            group, _, name = place.partition("/")
            if "." not in group:
                return None
            resource = (group, name)
        for wanted in (resource, (resource[0], "*"), ("*", "*")):
            found = self._chains.get(wanted)
            if found is not None:
                name = f"{resource[1]}.{resource[0]}" if resource[0] else resource[1]
                return Prefixed(
                    found,
                    note_sealed=partial(self._metrics.sealed, name),
                    note_opened=partial(self._metrics.opened, name),
                )
        return None

    def _make(self, provider: Provider, make_envelope: MakeEnvelope) -> tuple[bytes, Transformer]:
        if provider.kms is not None:
            envelope = make_envelope(provider.kms)
            self.envelopes.append(envelope)
            return f"k8s:enc:kms:v2:{provider.kms.name}:".encode(), envelope
        match provider.type:
            case "identity":
                return b"", Identity()
            case "secretbox":
                make: Callable[[bytes], Transformer] = make_secretbox
                unknown = _NO_SECRETBOX_KEY
            case "aescbc":
                make, unknown = AESCBC, _NO_AES_KEY
            case _:
                make, unknown = AESGCM, _NO_AES_KEY
        keys = [(f"{key.name}:".encode(), make(key.secret)) for key in provider.keys]
        return f"k8s:enc:{provider.type}:v1:".encode(), Prefixed(keys, unknown)


@cache
def _built_in() -> dict[str, GroupAndResource]:
    """Group and resource by storage key, in the group that objects are kept in."""
    return {
        resource.key: (resource.hub.group, resource.name)
        for version in table().values()
        for resource in version.resources
        if resource.is_stored
    }
