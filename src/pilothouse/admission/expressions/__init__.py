"""CEL in admission.

evaluation       expressions, compiled once, and what is left of their budget while they run; match conditions
access_checks    access checks that have to wait for their answer
"""
