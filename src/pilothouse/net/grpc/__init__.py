"""gRPC as a client, on this server's own HTTP/2 frames: single calls and streams of messages, which are bytes here.

    Channel (one server)  →  GrpcConnection (HTTP/2)  →  UnaryCall, StreamCall (one HTTP/2 stream each)

There is no retrying, balancing or compression: who calls decides what to do when a call fails. Why not the package of
that name is told in ``docs/investigations/etcd.md``.
"""

from pilothouse.net.grpc.calls import StreamCall
from pilothouse.net.grpc.channel import Channel, tls_for_grpc
from pilothouse.net.grpc.failures import RpcError

__all__ = ["Channel", "RpcError", "StreamCall", "tls_for_grpc"]
