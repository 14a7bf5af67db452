"""The kinds of internal.apiserver.k8s.io."""
