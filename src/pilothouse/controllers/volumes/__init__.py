"""Persistent volumes and their claims: brought together, protected, attached and made larger."""
