"""Tokens that are kept in secrets: of service accounts, and of those who join a cluster."""
