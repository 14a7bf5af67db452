import asyncio

from pilothouse.authn.loopback import API_SERVER, LoopbackConnection, controller_user, own_identity
from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Connection
from pilothouse.net.request_head import HeaderBlock, RequestLine


def request_on(connection: Connection, **headers: str) -> APIRequest:
    values = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    line = RequestLine("GET", b"/api", "/api", "/api", "", 1, b"localhost")
    return APIRequest(connection, line, HeaderBlock(values, {}), True, None)


async def test_only_a_connection_made_in_this_process_vouches() -> None:
    own = own_identity(request_on(LoopbackConnection(API_SERVER)))
    assert own is not None
    assert own.user.groups == ("system:masters", "system:authenticated")
    socket = Connection(asyncio.Transport({"peername": ("::1", 0)}))
    assert own_identity(request_on(socket)) is None
    assert own_identity(request_on(socket, x_remote_user="system:apiserver", authorization="Bearer x")) is None


async def test_controllers_are_service_accounts_of_kube_system() -> None:
    user = controller_user("job-controller")
    assert user.name == "system:serviceaccount:kube-system:job-controller"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:kube-system")
