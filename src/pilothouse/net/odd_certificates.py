"""What ``cryptography`` raises over certificates and requests that others have made.

It reads only a part of them when they come, and has exceptions of its own for some oddities: a version that there is
not, an extension that stands twice, a name of a kind that it does not know. Anybody may show such a certificate.
"""

from __future__ import annotations


def unreadable(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """All of that, and others, for an ``except`` clause: who needs the library for nothing else does not load it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.x509 import DuplicateExtension, InvalidVersion, UnsupportedGeneralNameType

    return *others, ValueError, DuplicateExtension, InvalidVersion, UnsupportedAlgorithm, UnsupportedGeneralNameType
