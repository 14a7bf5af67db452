"""One verb, one module. Each is ``async (scope, request) -> Response`` and raises a StatusError to refuse.

All begin alike: ``negotiate`` finds out which form the client takes, then the body or the options are read. Reads ask
the store and answer with entries of the cache. Writes go through a ``WriteRequest`` (``endpoints/write_request.py``),
which knows about field management and admission; its warnings go out whether the write succeeds or not.
"""
