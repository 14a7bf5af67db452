"""Scores: which of the nodes that would do is the best. ``profile.py`` has the list, with weights."""
