"""Peers: the other API servers on the same store, which may be of another version or serve other APIs.

A request for a resource that only peers serve goes to one of them, and discovery lists what all serve together. Only
where ``--peer-ca-file`` says how peers are believed.

    discovery.py    who the peers are (their Leases), and what each says it serves
    exclusions.py   what is never asked of peers: group versions of custom resources and of APIServices
    apis.py         from both: the resources that only peers serve
    proxy.py        requests passed on, and questions of our own
    merging.py      one discovery document out of several
"""
