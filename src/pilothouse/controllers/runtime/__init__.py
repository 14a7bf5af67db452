"""What controllers are made of: informers, work queues, a loopback client, a leader lease, events, expectations.

docs/controllers.md shows how a controller is put together from these.
"""
