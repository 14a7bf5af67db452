"""The generic API server: what all three servers of the chain, and other people's aggregated servers, are built on.

    generic            GenericAPIServer: group versions, routes, and a delegate for what it does not serve
    routes             PathMux, a table of paths that are no resources
    route_handlers     what serves a path, and what refuses methods and types of content before it
    hooks, lifecycle   what begins when the server listens and ends before it stops; the signals of its life
    health             /healthz, /livez, /readyz

What is served beside resources, each installed on the first server of a chain:

    discovery          /api, /apis, and the index of all paths
    openapi_routes     /openapi/v2 and v3, as documents of Go's file server (content)
    openid_routes      how others verify service account tokens
    standard_routes    /version, /metrics (build_metrics are among them)
    debugging_pages    /statusz and /flagz
    debug_flags        /debug/flags/v; beside it profiling_pages, log_files, and debug_socket for when nobody gets in
    trace_export       spans for a collector
"""
