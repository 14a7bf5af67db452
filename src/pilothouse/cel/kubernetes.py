"""The environments Kubernetes offers to expressions, by the version they must be compatible with.

New expressions may use what the release before this one understands too, so that a rollback finds nothing it cannot
read; stored expressions may use everything of this release.
"""

from __future__ import annotations

from functools import cache

from pilothouse.cel.declarations import Library
from pilothouse.cel.environment import Environment
from pilothouse.cel.library.addresses import CIDR_LIBRARY, IP_LIBRARY
from pilothouse.cel.library.authorizing import AUTHORIZING_LIBRARY, SELECTORS_LIBRARY
from pilothouse.cel.library.formats import FORMAT_LIBRARY
from pilothouse.cel.library.lists import EXTENDED_LISTS, INCLUDES, KUBERNETES_LISTS, SETS
from pilothouse.cel.library.optionals import OPTIONAL_LIBRARY, TWO_VARIABLE_LIBRARY
from pilothouse.cel.library.quantities import QUANTITY_LIBRARY
from pilothouse.cel.library.regex import REGEX_LIBRARY
from pilothouse.cel.library.standard import STANDARD_LIBRARY
from pilothouse.cel.library.text import TEXT_LIBRARY
from pilothouse.cel.library.urls import URL_LIBRARY
from pilothouse.cel.library.versions import SEMVER_LIBRARY

COMPATIBLE = (1, 36)
CURRENT = (1, 37)

_INTRODUCED: tuple[tuple[tuple[int, int], Library], ...] = (
    ((1, 0), STANDARD_LIBRARY),
    ((1, 0), URL_LIBRARY),
    ((1, 0), REGEX_LIBRARY),
    ((1, 0), KUBERNETES_LISTS),
    ((1, 27), AUTHORIZING_LIBRARY),
    ((1, 28), OPTIONAL_LIBRARY),
    ((1, 28), QUANTITY_LIBRARY),
    ((1, 29), TEXT_LIBRARY),
    ((1, 29), SETS),
    ((1, 30), IP_LIBRARY),
    ((1, 30), CIDR_LIBRARY),
    ((1, 31), FORMAT_LIBRARY),
    ((1, 31), SELECTORS_LIBRARY),
    ((1, 32), TWO_VARIABLE_LIBRARY),
    ((1, 33), SEMVER_LIBRARY),
    ((1, 34), EXTENDED_LISTS),
    ((1, 37), INCLUDES),
)


@cache
def libraries(version: tuple[int, int] = COMPATIBLE) -> tuple[Library, ...]:
    """Return the libraries that expressions of a version may use."""
    return tuple(library for introduced, library in _INTRODUCED if introduced <= version)


@cache
def base_environment(version: tuple[int, int] = COMPATIBLE) -> Environment:
    """Return the environment without variables that all uses extend."""
    return Environment({}, libraries(version))
