"""``/healthz``, ``/livez`` and ``/readyz``: named checks, alone or all together.

Each endpoint has its own list of checks, in the order they were added. ``?verbose`` prints every result, ``?exclude=x``
leaves one out; a failure is a 500 that names the checks which failed, and never why (that goes to the log).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import PLAIN_TEXT, page_not_found, text_response
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.metrics import Counter, Gauge, Instrument
from pilothouse.net.messages import Response
from pilothouse.server.route_handlers import RouteHandler
from pilothouse.server.routes import PathMux

logger = logging.getLogger(__name__)
ENDPOINTS: Final = ("healthz", "livez", "readyz")
Check = Callable[[], str]
"""Returns nothing when all is well, else what is wrong."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One named check."""

    name: str
    check: Check
    backed_by: str = ""
    """What the check looks at."""
    group: str = ""
    """Another name it may be excluded by, together with others."""


class HealthChecks:
    """The checks of a chain of servers, one list an endpoint."""

    def __init__(self) -> None:
        self._checks: dict[str, list[HealthCheck]] = {endpoint: [] for endpoint in ENDPOINTS}
        self._states = Gauge(
            "kubernetes_healthcheck",
            "[STABLE] Whether a check passed when last asked.",
            ("name", "type"),
            joined="least",
        )
        self._results = Counter(
            "kubernetes_healthchecks_total", "[STABLE] Results of checks.", ("name", "status", "type")
        )

    def instruments(self) -> list[Instrument]:
        """What ``/metrics/slis`` shows."""
        return [self._states, self._results]

    def _note(self, name: str, endpoint: str, error: str) -> None:
        self._states.labelled(name, endpoint).value = 0 if error else 1
        self._results.labelled(name, "error" if error else "success", endpoint).value += 1

    def add(
        self,
        name: str,
        check: Check,
        endpoints: tuple[str, ...] = ENDPOINTS,
        *,
        backed_by: str = "",
        group: str = "",
    ) -> None:
        """Add a check at the end of the endpoints' lists, and say what it looks at."""
        for endpoint in endpoints:
            self._checks[endpoint].append(HealthCheck(name, check, backed_by, group))

    def described(self) -> list[tuple[str, str, str]]:
        """Every check once: its name, what it looks at, and the endpoints that have it."""
        found: dict[str, tuple[str, list[str]]] = {}
        for endpoint, checks in self._checks.items():
            for check in checks:
                found.setdefault(check.name, (check.backed_by, []))[1].append(endpoint)
        return [(name, backed_by, ",".join(endpoints)) for name, (backed_by, endpoints) in found.items()]

    def errors(self) -> dict[str, str]:
        """Which checks of readiness fail now, and why."""
        found = ((check.name, check.check()) for check in self._checks["readyz"])
        return {name: error for name, error in found if error}

    def names(self, endpoint: str) -> list[str]:
        """The names of an endpoint's checks, in order."""
        return [check.name for check in self._checks[endpoint]]

    def install(self, mux: PathMux) -> None:
        """Serve the three endpoints and every single check below them."""
        for endpoint in ENDPOINTS:
            mux.add(f"/{endpoint}", self._all(endpoint))
            for check in self._checks[endpoint]:
                mux.add(f"/{endpoint}/{check.name}", self._single(check))
            mux.add_prefix(f"/{endpoint}/", _unknown_check, hidden=True)

    def _all(self, endpoint: str) -> RouteHandler:
        async def serve(request: APIRequest) -> Response:
            return self.evaluate(endpoint, request)

        return serve

    def _single(self, check: HealthCheck) -> RouteHandler:
        async def serve(request: APIRequest) -> Response:
            error = check.check()
            if error:
                return text_response(500, f"internal server error: {error}\n".encode())
            return Response(200, b"ok", PLAIN_TEXT)

        return serve

    def evaluate(self, endpoint: str, request: APIRequest) -> Response:
        """Run all checks that the request does not exclude."""
        query = request.options
        excluded = set(query.all("exclude"))
        unknown = set(excluded)
        lines: list[str] = []
        failed: list[str] = []
        for check in self._checks[endpoint]:
            names = (check.name, check.group) if check.group else (check.name,)
            if by := next((name for name in names if name in excluded), ""):
                unknown.discard(by)
                lines.append(f"[+]{check.name} excluded{'' if by == check.name else f' with {by}'}: ok")
                continue
            error = check.check()
            self._note(check.name, endpoint, error)
            if error:
                failed.append(check.name)
                lines.append(f"[-]{check.name} failed: reason withheld")
                logger.info("%s check %s failed: %s", endpoint, check.name, error)
            else:
                lines.append(f"[+]{check.name} ok")
        if unknown:
            listed = ",".join(quote(name) for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
        text = "".join(f"{line}\n" for line in lines)
        if failed:
            return text_response(500, f"{text}{endpoint} check failed\n".encode())
        if query.first("verbose") is None:
            return text_response(200, b"ok")
        return text_response(200, f"{text}{endpoint} check passed\n".encode())


async def _unknown_check(request: APIRequest) -> Response:
    return page_not_found()
