"""Serving custom resources: the same verbs, stores and scopes as built-in ones, made from a definition.

body        reading what clients send, by the definition's schema
conversion  between the versions of a definition
codec       between objects and stored bytes
stores      one store for each version, over one cache
strategies  rules of custom resources and of their status
columns     tables by JSONPath
scale       the scale subresource by the definition's paths
definition  all of it for one definition
versions    which definition serves a request
"""
