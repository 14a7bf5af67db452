"""The kinds of apiextensions.k8s.io, and the schemas that custom resources bring along."""
