"""Filters: which nodes a pod can run on, and in which words a node is ruled out. ``profile.py`` is the list."""
