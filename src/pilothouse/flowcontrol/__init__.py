"""Priority and fairness: which requests are served now, which wait, and which are turned away.

    request ─ matching ─► FlowSchema ─► PriorityLevel ─ shuffle sharding ─► one queue of its QueueSet ─► a seat
              rules.py    schemas.py    levels.py       sharding.py         queue_set.py

``controller.py`` holds the configuration and hands out seats, ``work.py`` estimates how many a request takes,
``allocation.py`` and ``occupancy.py`` let levels borrow seats from each other. ``max_in_flight.py`` is what is left
when all this is switched off. ``filters/flow_control.py`` puts it in the way of requests.
"""
