"""The kinds of apiregistration.k8s.io."""
