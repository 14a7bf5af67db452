"""The schema engine: what a kind's objects look like, and decoding them as kube-apiserver would.

``types`` are the nodes a schema is made of, ``decoding`` turns JSON values into normalised objects, ``unknown`` names
the fields that decoding dropped.
"""
