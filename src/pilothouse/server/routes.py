"""Paths that are no resources: exact ones, and prefixes that end with a slash. The longest prefix wins."""

from __future__ import annotations

from pilothouse.server.route_handlers import RouteHandler


class PathMux:
    """A table of handlers. Registered paths are listed in the server's index unless they are hidden."""

    def __init__(self) -> None:
        self._exact: dict[str, RouteHandler] = {}
        self._prefixes: dict[str, RouteHandler] = {}
        # What prefixes begin with: most paths begin otherwise, and need not be searched for.
        self._beginnings: set[str] = set()
        self._longest = 0
        self._hidden: set[str] = set()

    def add(self, path: str, handler: RouteHandler, *, hidden: bool = False) -> None:
        """Serve exactly this path."""
        self._exact[path] = handler
        if hidden:
            self._hidden.add(path)

    def add_with_slash(self, path: str, handler: RouteHandler) -> None:
        """The same, and with a slash behind it, which the index does not show."""
        self.add(path, handler)
        self.add(f"{path}/", handler, hidden=True)

    def add_prefix(self, prefix: str, handler: RouteHandler, *, hidden: bool = False) -> None:
        """Serve everything below a prefix, which ends with a slash."""
        self._prefixes[prefix] = handler
        self._beginnings.add(_beginning(prefix))
        self._longest = max(self._longest, len(prefix))
        if hidden:
            self._hidden.add(prefix)

    def remove_with_slash(self, path: str) -> None:
        """Stop serving a path in both forms."""
        self._exact.pop(path, None)
        self._exact.pop(f"{path}/", None)

    def find(self, path: str) -> RouteHandler | None:
        """The handler for a path."""
        handler = self._exact.get(path)
        # Without a call: every request for a resource comes by here.
        if handler is not None or path[: path.find("/", 1)] not in self._beginnings:
            return handler
        # Only so much of the path is looked at as a prefix can be long, whatever clients send.
        end = path.rfind("/", 0, self._longest)
        while end >= 0:
            handler = self._prefixes.get(path[: end + 1])
            if handler is not None:
                return handler
            end = path.rfind("/", 0, end)
        return None

    def paths(self) -> list[str]:
        """All paths that the index shows."""
        return sorted({*self._exact, *self._prefixes} - self._hidden)


def _beginning(path: str) -> str:
    """The first segment of a path, up to the slash after it."""
    return path[: path.find("/", 1)]
