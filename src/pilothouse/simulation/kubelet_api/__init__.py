"""The API of a kubelet that API servers talk to: logs, exec, attach and port-forward, over SPDY and over WebSocket.

commands.py    what is run, and its streams
logs.py        the log of a container that does not exist
streams.py     both protocols of exec, attach and port-forward
server.py      which path does what
"""
