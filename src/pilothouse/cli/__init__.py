"""The commands ``pilothouse`` and ``kube-apiserver``."""
