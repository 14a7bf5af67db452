"""Cached entries as answers: objects, lists, tables, bare metadata."""
