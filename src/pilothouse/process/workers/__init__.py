"""Several processes that serve one cluster on one port (``--workers``). Imported only where there are several.

pool.py         the owner's side: starts the others, looks after them, gives them connections, speaks for all
worker.py       one process of the pool as the owner knows it
pulse.py        whether it still answers
membership.py   the other side: a process that serves beside the owner
control.py      what the two say to each other
handover.py     passing connections from the one that accepts to the one that serves
"""
