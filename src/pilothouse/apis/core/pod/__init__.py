"""Pods themselves: how they are created, changed through each of their subresources, deleted and shown."""
