"""Webhook configurations and policies from files of the server itself (``staticManifestsDir``).

They are in force before the first request, come before those of the API, and hold for changes of the API's own ones as
well. Nobody can change them through the API: names that end with ``.static.k8s.io`` are reserved for them.

files      documents of a folder, and what identifies their content
loading    from documents to objects, defaulted and validated
source     the objects in force, read again when the files change
"""
