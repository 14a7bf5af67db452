"""Data: every built-in type and resource of the Kubernetes release that is served, as compact text.

``types.txt``, ``enums.txt`` and ``resources.txt`` are written by the scripts in ``tools/`` and read by ``apis.types``,
``apis.enumerations`` and ``apis.resources``.
"""
