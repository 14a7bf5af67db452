"""One verb, one module. Each is ``async (scope, request) -> Response`` and raises a StatusError to refuse."""
