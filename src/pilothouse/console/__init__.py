"""The console: a web page to look into the cluster, served below ``/console/`` where ``--console`` is on.

    console.py         which chain of filters a path below /console takes
    assets.py          the page: files anybody may have
    sessions.py        how a browser without a certificate signs in; shared_sessions.py: to any of several processes
    history.py         the past of an object, for who may get it
    recorder.py        what happens to requests, told to those who look and to nobody else
    traces.py          one request on its way through the chain
    lookout.py         looking at the requests of all processes; request_stream.py brings them to the page
    vitals.py          watches, queues, store and loop, once a second

The page is a client like any other: it asks the API with its user's rights. Nothing here is imported where it is off.
"""
