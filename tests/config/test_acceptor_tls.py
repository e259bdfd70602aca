"""TLS and WebSocket options of an acceptor: read, tried at the start, and refused with line and remedy."""

# BROKER-4

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from delosmq.config.tls import openssl_name
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import AcceptorSettings, TlsSettings
from tests.certificates import Stores, make_stores, write_identity
from tests.config.conftest import Load

Read = Callable[[str], AcceptorSettings]
CORE = (
    '<address-settings><address-setting match="#"><address-full-policy>BLOCK</address-full-policy></address-setting>'
    '</address-settings><security-settings><security-setting match="#"/></security-settings>'
    '<acceptors><acceptor name="a">tcp://{}:61613?protocols=STOMP;{}</acceptor></acceptors>'
)


def core(options: str, host: str = "127.0.0.1") -> str:
    return CORE.format(host, options)


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """Beside broker.xml, where relative paths begin."""
    return make_stores(tmp_path)


def mistake(load: Load, options: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(core(options))
    return str(caught.value)


def test_every_option_is_read(load: Load, stores: Stores) -> None:
    options = (
        "sslEnabled=true;keyStorePath=server.pem;keyStoreType=pem;keyStorePassword=hunter2;trustStorePath=authority.pem;"
        "trustStoreType=PEMCA;needClientAuth=true;wantClientAuth=true;enabledProtocols=TLSv1.2,TLSv1.3;"
        "enabledCipherSuites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256;sslAutoReload=true;"
        "webSocketMaxFramePayloadLength=1M;webSocketEncoderType=text"
    )
    (acceptor,) = load(core(options)).settings.acceptors
    assert acceptor.tls == TlsSettings(
        key_store_path=str(stores.server),
        key_store_type="pem",
        key_store_password="hunter2",
        trust_store_path=str(stores.authority),
        trust_store_type="PEMCA",
        need_client_auth=True,
        want_client_auth=True,
        enabled_protocols=("TLSv1.2", "TLSv1.3"),
        enabled_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
        auto_reload=True,
    )
    assert (acceptor.web_socket_max_frame_bytes, acceptor.web_socket_text) == (1024**2, True)
    assert "hunter2" not in repr(acceptor)


def test_an_acceptor_has_no_tls_unless_it_says_so(load: Load, stores: Stores) -> None:
    loaded = load(core("keyStorePath=server.pem"))
    assert loaded.settings.acceptors[0].tls is None
    assert any("DMQ6100" in notice and "sslEnabled=true" in notice for notice in loaded.notices)
    assert load(core("sslEnabled=false")).settings.acceptors[0].tls is None


def test_with_tls_other_machines_may_come(load: Load, stores: Stores) -> None:
    assert load(core("sslEnabled=true;keyStorePath=server.pem", host="0.0.0.0")).notices == []
    assert any("DMQ4107" in notice for notice in load(core("", host="0.0.0.0")).notices)


def test_a_store_may_name_its_files(load: Load, stores: Stores, tmp_path: Path) -> None:
    whole = stores.server.read_text()
    key_end = whole.index("-----BEGIN CERTIFICATE-----")
    (tmp_path / "key.pem").write_text(whole[:key_end])
    (tmp_path / "chain.pem").write_text(whole[key_end:])
    (tmp_path / "store.cfg").write_text("alias=a\nsource.key=key.pem\nsource.cert=file:chain.pem\n")
    (acceptor,) = load(core("sslEnabled=true;keyStorePath=store.cfg;keyStoreType=PEMCFG")).settings.acceptors
    assert acceptor.tls is not None
    (tmp_path / "store.cfg").write_text("source.cert=chain.pem\n")
    found = mistake(load, "sslEnabled=true;keyStorePath=store.cfg;keyStoreType=PEMCFG")
    assert "0 have a key and 1 a certificate" in found
    (tmp_path / "store.cfg").write_text("alias=a\n")
    assert "names no files" in mistake(load, "sslEnabled=true;keyStorePath=store.cfg;keyStoreType=PEMCFG")


def test_an_encrypted_key_needs_its_password(load: Load, stores: Stores, tmp_path: Path) -> None:
    whole = stores.server.read_bytes()
    key_end = whole.index(b"-----BEGIN CERTIFICATE-----")
    key = serialization.load_pem_private_key(whole[:key_end], None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter2"),
    )
    stores.server.write_bytes(encrypted + whole[key_end:])
    options = "sslEnabled=true;keyStorePath=server.pem;keyStorePassword="
    assert load(core(options + "hunter2")).settings.acceptors[0].tls is not None
    assert "set keyStorePassword" in mistake(load, "sslEnabled=true;keyStorePath=server.pem")
    wrong = mistake(load, options + "guess")
    assert "correct keyStorePassword" in wrong
    assert "guess" not in wrong


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "add keyStorePath=broker.pem"),
        ("keyStorePath=gone.pem", "gone.pem is missing; put it there"),
        ("keyStorePath=authority.pem", "has no private key; put the certificate, its chain and the key into one"),
        ("keyStorePath=server.pem;keyStoreType=PKCS12", "openssl pkcs12 -in"),
        ("keyStorePath=server.pem;keyStoreType=JKS", "keytool -importkeystore"),
        ("keyStorePath=server.pem;keyStorePassword=ENC(abc)", "is masked"),
        ("keyStorePath=server.pem;enabledProtocols=TLSv1.1,TLSv1.2", "TLSv1.1, which is broken"),
        ("keyStorePath=server.pem;enabledProtocols=TLSv1_3", "did you mean 'TLSv1.3'?"),
        ("keyStorePath=server.pem;enabledCipherSuites=TLS_NO_SUCH", "which OpenSSL doesn't know"),
        ("keyStorePath=server.pem;enabledCipherSuites=ECDHE-RSA-AES128-GCM-SHA256", "no handshake is possible"),
        (
            "keyStorePath=server.pem;enabledProtocols=TLSv1.3;enabledCipherSuites=ECDHE-RSA-AES128-GCM-SHA256",
            "has no suite of TLSv1.3",
        ),
        ("keyStorePath=server.pem;needClientAuth=true", "needClientAuth needs trustStorePath"),
        ("keyStorePath=server.pem;wantClientAuth=true;trustStorePath=gone.pem", "the trust store"),
        (
            "keyStorePath=server.pem;needClientAuth=true;trustStorePath=authority.pem;trustStoreType=JKS",
            "-nokeys",
        ),
        ("keyStorePath=server.pem;needClientAuth=maybe", "true or false"),
        ("keyStorePath=server.pem;verifyHost=true", "not compared"),
        ("keyStorePath=server.pem;crlPath=x.crl", "revoked"),
        ("keyStorePath=server.pem;webSocketEncoderType=json", "binary or text"),
        ("keyStorePath=server.pem;webSocketMaxFramePayloadLength=10", "at least 126"),
    ],
)
def test_a_mistake_stops_the_start_with_line_and_remedy(load: Load, stores: Stores, options: str, said: str) -> None:
    found = mistake(load, f"sslEnabled=true;{options}")
    assert said in found
    assert "broker.xml:3:" in found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bytes.fromhex("feedfeed00000002"), "is a JKS file"),
        (b"0\x82\x0a\xbc\x02\x01\x03", "is a PKCS12 file"),
        (b"-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n", "can't be read"),
        (b"nothing", "has no certificate"),
    ],
)
def test_a_file_that_is_no_pem_is_named_for_what_it_is(load: Load, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "server.pem").write_bytes(content)
    assert said in mistake(load, "sslEnabled=true;keyStorePath=server.pem")


def test_a_key_of_another_certificate_stops_the_start(load: Load, stores: Stores) -> None:
    ours, theirs = stores.server.read_text(), stores.client.read_text()
    key = theirs[: theirs.index("-----BEGIN CERTIFICATE-----")]
    stores.server.write_text(key + ours[ours.index("-----BEGIN CERTIFICATE-----") :])
    assert "is not that of the first certificate" in mistake(load, "sslEnabled=true;keyStorePath=server.pem")


def test_a_certificate_that_has_expired_stops_the_start(load: Load, tmp_path: Path) -> None:
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    write_identity(trustme.CA(), tmp_path / "server.pem", not_after=past)
    found = mistake(load, "sslEnabled=true;keyStorePath=server.pem")
    assert "has expired" in found
    assert "renew it" in found


def test_a_certificate_that_expires_soon_is_named(load: Load, tmp_path: Path) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=5)
    write_identity(trustme.CA(), tmp_path / "server.pem", not_after=soon)
    (notice,) = load(core("sslEnabled=true;keyStorePath=server.pem")).notices
    assert "DMQ6108" in notice
    assert "in 5 days" in notice


@pytest.mark.parametrize(
    ("iana", "own"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA", "DHE-RSA-AES256-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_suites_may_have_the_names_of_java(iana: str, own: str) -> None:
    assert openssl_name(iana) == own
