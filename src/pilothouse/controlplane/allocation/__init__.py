"""Handing out cluster addresses and node ports to services.

ranges       blocks of addresses and ranges of ports, and the order in which they are handed out
families     which address families a service gets
cluster_ips  addresses, each kept as an IPAddress object that is created only if absent
node_ports   ports, kept as one bitmap that is replaced only if unchanged
port_plans   which ports a service needs
services     all of it around one write of a service: allocate, then commit or undo
repair       what is wrong between services and what is allocated, and how to right it
"""
