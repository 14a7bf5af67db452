"""The schema engine of custom resources: an OpenAPI v3 schema by its author, compiled once, applied to every object.

nodes        the structural part of a schema: properties, items, what is kept unknown, defaults
pruning      dropping what the schema does not know, and nulls it does not want
defaulting   filling in what was left open
embedded     objects within objects: their kind, apiVersion and metadata
list_types   sets and maps written as lists
values       types, limits, patterns, formats, combinations; with errors in kube-apiserver's words
shapes       how objects merge in a server-side apply
"""
