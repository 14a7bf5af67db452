"""Puts the servers together: completed options → configuration → the chain of three servers → run."""
