"""Users that certificates name, of an instance directory: at the start, and after SIGHUP (a real process)."""

# BROKER-4

import ssl
from pathlib import Path

import pytest
import trustme

from tests.certificates import write_identity
from tests.cli.processes import call
from tests.cli.test_reload import Peer, Reloading, end, said

ALICE = "CN=alice, OU=Tea, O=Example"


@pytest.fixture
def tls(instance: Path) -> ssl.SSLContext:
    """Of a client with the certificate of alice; the instance's acceptor asks for one."""
    etc, authority = instance / "etc", trustme.CA()
    authority.cert_pem.write_to_path(str(etc / "authority.pem"))
    write_identity(authority, etc / "server.pem")
    options = "sslEnabled=true;keyStorePath=server.pem;trustStorePath=authority.pem;needClientAuth=true;"
    text = (etc / "broker.xml").read_text()
    (etc / "broker.xml").write_text(text.replace("anycastPrefix=/queue/", f"{options}anycastPrefix=/queue/", 1))
    issued = authority.issue_cert(
        "alice@test", common_name="alice", organization_name="Example", organization_unit_name="Tea"
    )
    (etc / "alice.pem").write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    context = ssl.create_default_context(cafile=etc / "authority.pem")
    context.load_cert_chain(etc / "alice.pem")
    return context


def test_a_reload_takes_over_whom_certificates_name_and_what_they_may(instance: Path, tls: ssl.SSLContext) -> None:
    (instance / "etc" / "cert-users.properties").write_text(f"alice = {ALICE}\n")
    (instance / "etc" / "cert-roles.properties").write_text("amq = alice\n")
    broker = Reloading(instance)
    try:
        alice = Peer(broker.port, "nobody", "wrong", tls)
        assert alice.send("orders").startswith("RECEIPT")
        assert said(broker.reload(), "changed: nothing")
        broker.edit("cert-roles.properties", "amq = alice", "amq =")
        assert said(broker.reload(), "changed: cert-users.properties")
        assert "user 'alice' lacks the permission" in alice.send("orders")
        alice.close()
        broker.edit("cert-roles.properties", "amq =", "amq = bob")
        broker.edit("cert-users.properties", f"alice = {ALICE}", "bob = /CN=[a-f]+lice, OU=Tea, O=Example/")
        broker.reload()
        bob = Peer(broker.port, "nobody", "wrong", tls)
        assert bob.send("orders").startswith("RECEIPT")
        bob.close()
        broker.edit("cert-users.properties", "[a-f]+lice", "[b-f]+lice")
        broker.reload()
        stranger = Peer(broker.port, "nobody", "wrong", tls)
        assert "DMQ5305" in stranger.login
        stranger.close()
        (instance / "etc" / "cert-users.properties").unlink()
        broker.reload()
        stranger = Peer(broker.port, "nobody", "wrong", tls)
        assert "DMQ5106" in stranger.login
        stranger.close()
    finally:
        end(broker)


def test_a_mistake_in_the_file_stops_the_start(instance: Path, tls: ssl.SSLContext) -> None:
    (instance / "etc" / "cert-users.properties").write_text("alice = /(/\n")
    (instance / "etc" / "cert-roles.properties").write_text("")
    done = call("check", str(instance))
    assert done.returncode != 0
    assert "cert-users.properties:1" in done.stdout + done.stderr
