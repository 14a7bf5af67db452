"""CEL in admission.

evaluating    expressions, compiled once, and what is left of their budget while they run; match conditions
deciding      access checks that have to wait for their answer
"""
