"""Versions that kube-apiserver no longer serves, beside those of today: extensions/v1beta1, apps/v1beta2 and the like.

A legacy version is data (rows and types of the catalogue) and, where it is not just another name for today's, an
``Older`` in the module of its group: conversion from and to the version that objects are kept in, its own defaults, its
own rules. ``older.py`` is the mechanism, ``shapes.py`` conversion between versions whose fields have the same names.
Nothing here is read or imported before ``--runtime-config`` switches a legacy version on.
"""
