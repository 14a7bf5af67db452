"""Encryption at rest: values are transformed between stores and backend, as ``--encryption-provider-config`` says.

Formats and prefixes are kube-apiserver's, so either server reads what the other wrote.
"""
