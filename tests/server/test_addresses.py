"""Where the service listens: both families, several addresses, names, and what is said of those that cannot be had."""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from gramvec.errors import GramvecError, InputError
from gramvec.server.edge.run import listen_at_addresses
from gramvec.server.settings import Settings, settings_from
from support.errors import refused
from support.http import PATIENCE

with_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no IPv6")


def connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def families(*hosts: str) -> list[tuple[bool, bool]]:
    """For each socket of these hosts: whether it takes 127.0.0.1, and whether ::1."""
    with listen_at_addresses(settings_from({"host": hosts, "port": 0})) as listeners:
        (port,) = {listener.getsockname()[1] for listener in listeners}
        found = []
        for listener in listeners:
            others = [one for one in listeners if one is not listener]
            found.append((taken_by(listener, "127.0.0.1", port, others), taken_by(listener, "::1", port, others)))
        return found


def taken_by(listener: socket.socket, host: str, port: int, others: list[socket.socket]) -> bool:
    if not connects(host, port):
        return False
    for one in (listener, *others):
        one.settimeout(0)
        with suppress(BlockingIOError):
            one.accept()[0].close()
            return one is listener
    raise AssertionError("nobody was connected")


@with_ipv6
@pytest.mark.parametrize(
    ("hosts", "taken"),
    [
        (["::"], [(True, True)]),
        (["127.0.0.1"], [(True, False)]),
        (["::1"], [(False, True)]),
        (["0.0.0.0"], [(True, False)]),
        (["127.0.0.1", "::1"], [(True, False), (False, True)]),
        (["0.0.0.0", "::"], [(True, False), (False, True)]),
        (["::", "0.0.0.0"], [(False, True), (True, False)]),
    ],
)
def test_an_address_takes_its_family_and_all_of_them_take_both(
    hosts: list[str], taken: list[tuple[bool, bool]]
) -> None:
    assert families(*hosts) == taken


def test_a_system_without_ipv6_listens_on_all_addresses_of_ipv4(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create = socket.create_server

    def without(address: tuple[str, int], *, family: int, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        return create(address, family=family, **options)

    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    monkeypatch.setattr(socket, "create_server", without)
    caplog.set_level(logging.INFO, "gramvec.server")
    with listen_at_addresses(Settings(host=("::",), port=0)) as listeners:
        (listener,) = listeners
        assert listener.getsockname()[0] == "0.0.0.0"
        assert f"listening on http://0.0.0.0:{listener.getsockname()[1]} (try /docs)" in caplog.text
    with pytest.raises(GramvecError, match=r"::1 port \d+"):
        listen_at_addresses(Settings(host=("127.0.0.1", "::1"), port=0)).__enter__()


def test_a_name_is_listened_to_at_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is no address of this host, as ::1 in many containers."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("127.0.0.2", "192.0.2.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with listen_at_addresses(Settings(host=("some.name",), port=0)) as listeners:
        assert [one.getsockname()[0] for one in listeners] == ["127.0.0.2"]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found[1:])
    with pytest.raises(GramvecError, match=r"some\.name port 0"):
        listen_at_addresses(Settings(host=("some.name",), port=0)).__enter__()


def test_where_the_second_address_is_taken_the_first_is_let_go_of(port: int) -> None:
    with socket.create_server(("127.0.0.2", port)):
        with refused(GramvecError, f"127.0.0.2 port {port}"):
            listen_at_addresses(Settings(host=("127.0.0.1", "127.0.0.2"), port=port)).__enter__()
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize(("hosts", "why"), [([], "at least 1"), (["::", "::"], "twice"), (["127.0.0.1", ""], "empty")])
def test_hosts_that_are_none_are_refused(hosts: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        settings_from({"host": hosts})


def test_a_single_host_needs_no_list() -> None:
    assert settings_from({"host": "::1"}).host == ("::1",)


def test_the_image_listens_on_both() -> None:
    assert "GRAMVEC_HOST=:: " in (ROOT / "Dockerfile").read_text()


def test_everybody_of_this_host_may_connect_to_the_path(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with listen_at_addresses(Settings(unix_socket=tmp_path / "s")):
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o666
    finally:
        os.umask(before)


def test_a_service_that_has_bound_a_path_and_does_not_listen_yet_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as another:
        another.bind(str(path))
        soon = threading.Timer(0.05, another.listen)
        soon.start()
        with refused(GramvecError, "another process listens there"):
            listen_at_addresses(Settings(unix_socket=path)).__enter__()
        soon.join()
        assert path.exists()
