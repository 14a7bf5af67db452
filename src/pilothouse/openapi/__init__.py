"""OpenAPI v2 and v3 documents of everything served, made from the resource table and the catalogue when asked for."""
