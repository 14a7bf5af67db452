"""Image references, as far as the server looks into them: which pull policy an image without one gets.

The grammar is that of the distribution project's references. A text outside of it counts as tagged, so it is pulled
only if absent; nothing is refused here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_DOMAIN_PART: Final = r"[a-zA-Z0-9]++(?:-++[a-zA-Z0-9]++)*+"
_HOST: Final = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*+|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART: Final = r"[a-z0-9]++(?:(?:\.|__?|-++)[a-z0-9]++)*+"
_PATH: Final = rf"{_PATH_PART}(?:/{_PATH_PART})*+"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*+(?:[-_+.][A-Za-z][A-Za-z0-9]*+)*+:[0-9a-fA-F]{32,}"

_match_reference = re.compile(rf"({_HOST})/({_PATH})(?::({_TAG}))?(?:@({_DIGEST}))?").fullmatch
_is_identifier = re.compile(r"[a-f0-9]{64}").fullmatch
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_MAX_PATH: Final = 255


def default_pull_policy(image: str) -> str:
    """``Always`` for images tagged latest, in so many words or by saying nothing; ``IfNotPresent`` for all others."""
    return "Always" if is_latest(image) else "IfNotPresent"


@lru_cache(maxsize=2048)
def is_latest(image: str) -> bool:
    """Whether the reference means the tag ``latest``."""
    if _is_identifier(image):
        return False
    domain, remainder = _split_domain(image)
    remote = remainder.partition(":")[0]
    if remote.lower() != remote:
        return False
    match = _match_reference(f"{domain}/{remainder}")
    if match is None or len(match[2]) > _MAX_PATH:
        return False
    tag, digest = match[3], match[4]
    if digest is not None and not _is_valid_digest(digest):
        return False
    return tag == "latest" or (tag is None and digest is None)


def _split_domain(image: str) -> tuple[str, str]:
    """A reference without a registry means one on Docker Hub, and there ``library/`` if it has one part only."""
    first, slash, rest = image.partition("/")
    if not slash:
        return "docker.io", "library/" + image
    if first == "index.docker.io":
        first = "docker.io"
    elif first != "localhost" and not {".", ":"} & set(first) and first.lower() == first:
        first, rest = "docker.io", image
    if first == "docker.io" and "/" not in rest:
        rest = "library/" + rest
    return first, rest


def _is_valid_digest(digest: str) -> bool:
    algorithm, _, encoded = digest.partition(":")
    return _DIGEST_LENGTHS.get(algorithm) == len(encoded) and encoded.lower() == encoded
