"""Where the pods behind a service are: Endpoints, EndpointSlices, and slices that mirror Endpoints made by hand.

members.py      which pods of a service count, with which ports
legacy.py       the controller of Endpoints
slices.py       the controller of EndpointSlices
mirroring.py    the controller of slices for Endpoints that no selector makes
"""
