"""Who gets through: hosts before resolution, addresses after it, Lomi's own ports never."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from browser.egress import EgressGrant, HostPort, Origin
from browser.egress.dial import belongs_to_this_machine

if TYPE_CHECKING:
    from conftest import Lab

Resolver = Callable[[str, int], Awaitable[Sequence[ipaddress.IPv4Address | ipaddress.IPv6Address]]]


def answering(*addresses: str) -> Resolver:
    """Return a resolver that gives every name the same addresses."""

    async def resolve(_host: str, _port: int) -> Sequence[ipaddress.IPv4Address | ipaddress.IPv6Address]:
        return [ipaddress.ip_address(address) for address in addresses]

    return resolve


async def ask(lab: Lab, proxy: object, url: str, *, method: str = "GET", headers: str = "") -> tuple[int, str]:
    """Return the status and the proxy's own reason for one request on a fresh connection."""
    raw = await lab.raw(proxy)  # type: ignore[arg-type]
    raw.ask(url, method=method, headers=headers)
    status, found = await raw.head()
    return status, found.get("lomi-egress", "")


@pytest.mark.parametrize("method", ["GET", "POST", "CONNECT"])
async def test_another_port_or_host_is_refused_without_a_connection(lab: Lab, method: str) -> None:
    """A granted host on another port, and another loopback address on the same port, see no connection at all."""
    granted, other = await lab.server(), await lab.server()
    far = await lab.server("127.0.0.2")
    proxy = await lab.proxy(granted.origin)
    for server in (other, far):
        url = server.authority if method == "CONNECT" else f"{server.origin}/"
        assert await ask(lab, proxy, url, method=method) == (403, "origin_not_granted")
    assert other.connections == far.connections == 0
    assert [(refusal.host, refusal.port) for refusal in proxy.refusals] == [
        ("127.0.0.1", other.port),
        ("127.0.0.2", far.port),
    ]


async def test_a_refused_navigation_is_answered_with_nothing(lab: Lab) -> None:
    """204 is what makes an engine keep its old document; the reason is in the header and in the record."""
    granted, other = await lab.server(), await lab.server()
    proxy = await lab.proxy(granted.origin)
    headers = "Upgrade-Insecure-Requests: 1\r\n"
    assert await ask(lab, proxy, f"{other.origin}/", headers=headers) == (204, "origin_not_granted")
    assert next(iter(proxy.refusals)).document
    assert other.connections == 0


async def test_a_refused_upload_is_read_away_and_the_connection_goes_on(lab: Lab) -> None:
    """A form posted to an ungranted place leaves its connection usable."""
    granted, other = await lab.server(), await lab.server()
    raw = await lab.raw(await lab.proxy(granted.origin))
    raw.ask(f"{other.origin}/", method="POST", headers="Content-Length: 100000\r\n", body=b"x" * 100_000)
    assert (await raw.answer())[0] == 403
    raw.ask(f"{granted.origin}/")
    assert (await raw.answer())[0] == 200
    assert other.connections == 0


async def test_an_https_origin_does_not_grant_plain_http(lab: Lab) -> None:
    """The scheme is part of the origin for requests the proxy can read."""
    server = await lab.server()
    proxy = await lab.proxy(f"https://{server.authority}")
    assert await ask(lab, proxy, f"{server.origin}/") == (403, "scheme_not_granted")
    assert server.connections == 0


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.0.0.2", "::1", "10.0.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
        "0.0.0.0", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00::2", "fe80::1", "2002:7f00:1::1",
    ],
)  # fmt: skip
async def test_a_granted_name_may_not_lead_inside(lab: Lab, address: str) -> None:
    """A name whose owner points it at this machine or its network is refused after resolution, with the address."""
    server = await lab.server()
    name = f"http://rebind.test:{server.port}"
    proxy = await lab.proxy(name, resolve=answering(address))
    assert await ask(lab, proxy, f"{name}/") == (403, "address_not_granted")
    assert next(iter(proxy.refusals)).address == str(ipaddress.ip_address(address))
    assert await ask(lab, proxy, f"rebind.test:{server.port}", method="CONNECT") == (403, "address_not_granted")
    assert server.connections == 0


async def test_an_address_granted_by_number_may_be_reached_by_a_granted_name(lab: Lab) -> None:
    """Name and address in the grant together are the explicit grant for a name that leads inside."""
    server = await lab.server()
    name = f"http://intranet.test:{server.port}"
    place = HostPort("127.0.0.1", server.port)
    proxy = await lab.proxy(name, resources=frozenset({place}), resolve=answering("127.0.0.1"))
    assert await ask(lab, proxy, f"{name}/") == (200, "")


async def test_a_name_is_asked_once_for_a_while_and_judged_each_time(lab: Lab) -> None:
    """A page load asks for its name once; when the name changes its mind later, the new address is judged anew."""
    server = await lab.server()
    name = f"http://flip.test:{server.port}"
    asked, now = 0, 0.0

    async def flip(_host: str, _port: int) -> Sequence[ipaddress.IPv4Address]:
        nonlocal asked
        asked += 1
        return [ipaddress.IPv4Address("127.0.0.1" if asked == 1 else "127.0.0.3")]

    place = HostPort("127.0.0.1", server.port)
    proxy = await lab.proxy(name, resources=frozenset({place}), resolve=flip, clock=lambda: now)
    assert [await ask(lab, proxy, f"{name}/") for _ in range(4)] == [(200, "")] * 4
    assert (asked, server.connections) == (1, 4)
    now = 61.0
    assert await ask(lab, proxy, f"{name}/") == (403, "address_not_granted")
    assert asked == 2
    proxy.replace(EgressGrant(origins=frozenset({Origin.parse(name)})))
    assert await ask(lab, proxy, f"{name}/") == (403, "address_not_granted")


async def test_those_who_ask_for_one_name_at_once_share_one_look_up(lab: Lab) -> None:
    """Six connections of one page wait for one answer; when the first gives up, the next one asks."""
    server = await lab.server()
    release, asked = asyncio.Event(), 0

    async def slowly(_host: str, _port: int) -> Sequence[ipaddress.IPv4Address]:
        nonlocal asked
        asked += 1
        await release.wait()
        return [ipaddress.IPv4Address("127.0.0.1")]

    name = f"http://slow.test:{server.port}"
    place = HostPort("127.0.0.1", server.port)
    proxy = await lab.proxy(name, resources=frozenset({place}), resolve=slowly)
    asking = [await lab.raw(proxy) for _ in range(6)]
    for raw in asking:
        raw.ask(f"{name}/")
        await raw.writer.drain()
    asking[0].writer.close()
    await asking[0].writer.wait_closed()
    release.set()
    assert [(await raw.answer())[0] for raw in asking[1:]] == [200] * 5
    assert asked <= 2


async def test_refused_addresses_are_left_out_and_the_others_are_tried_in_turn(lab: Lab) -> None:
    """Of several addresses the admitted ones are tried until one answers."""
    server = await lab.server()
    name = f"http://many.test:{server.port}"
    proxy = await lab.proxy(
        name,
        resources=frozenset({HostPort("127.0.0.9", server.port), HostPort("127.0.0.1", server.port)}),
        resolve=answering("10.0.0.1", "127.0.0.9", "127.0.0.1"),
    )
    assert await ask(lab, proxy, f"{name}/") == (200, "")


async def test_localhost_means_this_machine_whatever_a_name_server_says(lab: Lab) -> None:
    """A granted localhost is never resolved, and reaches a server on either loopback address."""
    for host in ("127.0.0.1", "::1"):
        server = await lab.server(host)
        origin = f"http://app.localhost:{server.port}"
        proxy = await lab.proxy(origin, resolve=answering("93.184.216.34"))
        assert await ask(lab, proxy, f"{origin}/") == (200, "")


async def test_a_name_that_cannot_be_found_is_a_failure_not_a_refusal(lab: Lab) -> None:
    """No address, and no answer at an address, say which."""

    async def nothing(_host: str, _port: int) -> Sequence[ipaddress.IPv4Address]:
        raise OSError("no such name")

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        proxy = await lab.proxy("http://gone.test", f"http://127.0.0.1:{port}", resolve=nothing)
        assert await ask(lab, proxy, "http://gone.test/") == (502, "name_not_resolved")
        assert await ask(lab, proxy, f"http://127.0.0.1:{port}/") == (502, "connect_failed")
        assert await ask(lab, proxy, f"127.0.0.1:{port}", method="CONNECT") == (502, "connect_failed")
    assert [(entry.method, entry.status) for entry in proxy.network_log] == [("GET", 0), ("GET", 0), ("CONNECT", 0)]
    assert len(proxy.refusals) == 0


async def test_own_ports_are_refused_even_when_granted(lab: Lab) -> None:
    """The workbench's port stays closed for a page whose grant names it, by every name of this machine."""
    own = await lab.server()
    names = [f"http://127.0.0.1:{own.port}", f"http://localhost:{own.port}", f"http://0.0.0.0:{own.port}"]
    proxy = await lab.proxy(*names, refused_ports=frozenset({own.port}))
    for name in names:
        assert await ask(lab, proxy, f"{name}/") == (403, "own_port")
    assert own.connections == 0


async def test_own_ports_are_known_by_the_machines_other_addresses_too(lab: Lab) -> None:
    """An address of a network card leads to this machine as well as loopback does."""
    # Without a network there is none, and only an administrator could give the machine one.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no IPv4 address of its own")
        address = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("this machine has no IPv4 address of its own")
    own = await lab.server(address)
    proxy = await lab.proxy(own.origin, refused_ports=frozenset({own.port}))
    assert await ask(lab, proxy, f"{own.origin}/") == (403, "own_port")
    assert own.connections == 0


@pytest.mark.parametrize(
    ("address", "ours"),
    [("192.0.2.7", False), ("2001:db8::7", False), ("127.3.2.1", True), ("::1", True), ("::", True)],
)
def test_a_port_number_of_ours_on_another_machine_is_not_ours(address: str, ours: bool) -> None:
    """Own ports are refused on this machine only: elsewhere the same number is just a port."""
    assert belongs_to_this_machine(ipaddress.ip_address(address)) is ours


async def test_the_proxys_own_port_is_always_refused(lab: Lab) -> None:
    """A page cannot talk to its own proxy, though its grant names the port."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin)
    port = int(proxy.url.rpartition(":")[2])
    proxy.replace(EgressGrant(origins=frozenset({Origin("http", "127.0.0.1", port)})))
    assert await ask(lab, proxy, f"http://127.0.0.1:{port}/") == (403, "own_port")


async def test_resources_are_for_sub_resources_only(lab: Lab) -> None:
    """A host granted as a resource answers an image request and refuses a navigation."""
    page, images = await lab.server(), await lab.server("127.0.0.2")
    proxy = await lab.proxy(page.origin, resources=frozenset({HostPort("127.0.0.2", images.port)}))
    assert await ask(lab, proxy, f"{images.origin}/a.png") == (200, "")
    navigation = "Upgrade-Insecure-Requests: 1\r\n"
    assert await ask(lab, proxy, f"{images.origin}/", headers=navigation) == (204, "document_not_granted")
    assert images.paths == ["/a.png"]


async def test_public_resources_are_public_addresses(lab: Lab) -> None:
    """With `public`, a name that leads inside is refused, also where its address is granted to another name."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin, resources="public", resolve=answering("127.0.0.1"))
    assert await ask(lab, proxy, f"http://any.test:{server.port}/") == (403, "address_not_granted")
    assert await ask(lab, proxy, f"http://127.0.0.2:{server.port}/") == (403, "address_not_granted")
    assert await ask(lab, proxy, f"{server.origin}/") == (200, "")


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://127.1:{port}/", "http://0177.0.0.1:{port}/",
        "http://127.0.0.1.:{port}/", "http://u@127.0.0.1:{port}/", "http://127.0.0.1:{port}@b.test/",
        "http://[::ffff:127.0.0.1%lo]:{port}/", "http://localhost.:{port}/", "http://１２７.0.0.1:{port}/",
    ],
)  # fmt: skip
async def test_odd_spellings_of_a_granted_place_are_refused_before_resolution(lab: Lab, url: str) -> None:
    """Whatever a client writes, only the canonical spelling is compared with the grant."""
    server = await lab.server()
    proxy = await lab.proxy(server.origin, f"http://localhost:{server.port}", resolve=answering("127.0.0.1"))
    raw = await lab.raw(proxy)
    target = url.format(port=server.port).encode().decode("latin-1")
    raw.ask(target)
    assert (await raw.answer())[0] in (400, 403)
    assert server.connections == 0


async def test_a_grant_of_everything_stops_at_our_own_ports_and_at_what_is_no_host(lab: Lab) -> None:
    """Every origin, on this machine too; own ports, link-local and multicast addresses stay refused."""
    server, own = await lab.server(), await lab.server()
    grant = EgressGrant(origins=frozenset(), refused_ports=frozenset({own.port}), everywhere=True)
    proxy = await lab.proxy()
    proxy.replace(grant)
    assert (await ask(lab, proxy, f"http://localhost:{server.port}/"))[0] == 200
    assert await ask(lab, proxy, f"http://127.0.0.1:{own.port}/") == (403, "own_port")
    for address in ("169.254.169.254", "224.0.0.1"):
        assert await ask(lab, proxy, f"http://{address}/") == (403, "address_not_granted")
    assert own.connections == 0
