"""Admission: what a cluster's owner demands of objects, enforced between decoding and storing.

``chain`` runs plug-ins, ``catalogue`` finds them by name, ``plugins`` holds ours. A user's own
plug-in is a class like ours.
"""
