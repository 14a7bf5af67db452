"""Stores that implement the contract in `contract.py`; each passes `pilothouse.testing.storage_conformance`."""
