"""bootstrap.xml: where the HTTP interface listens, and with which TLS."""

import datetime
from pathlib import Path

import pytest
import trustme

from delosmq.config.bootstrap import LoadedBootstrap, load_bootstrap_xml
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import TlsSettings, WebBind
from tests.certificates import Stores, make_stores, write_identity


def load(tmp_path: Path, inside: str) -> LoadedBootstrap:
    path = tmp_path / "bootstrap.xml"
    path.write_text(f'<broker xmlns="http://activemq.apache.org/schema">\n{inside}\n</broker>')
    return load_bootstrap_xml(path, {"port": "9000"})


@pytest.mark.parametrize(
    ("inside", "web"),
    [
        ('<web><binding uri="http://127.0.0.1:8161"/></web>', WebBind()),
        ('<web><binding uri="http://[::1]:${port}"/></web>', WebBind("::1", 9000)),
        ('<web bind="http://localhost:0" path="web"/>', WebBind("localhost", 0)),
        ('<jaas-security domain="activemq"/><server configuration="file:/x/broker.xml"/>', None),
    ],
)
def test_the_bind_is_read(tmp_path: Path, inside: str, web: WebBind | None) -> None:
    assert load(tmp_path, inside).web == web


def test_what_is_ignored_is_listed_once(tmp_path: Path) -> None:
    inside = '<web path="w"><binding name="b" uri="http://localhost:1"><app url="c"/><app url="d"/></binding></web>'
    (notice,) = load(tmp_path, inside).notices
    assert notice.startswith("DMQ4101")
    assert notice.endswith("ignored: path, app")


@pytest.mark.parametrize(
    ("host", "warns"), [("0.0.0.0", True), ("broker.example", True), ("127.0.0.2", False), ("[::1]", False)]
)
def test_an_interface_without_tls_that_others_reach_is_told_of(tmp_path: Path, host: str, warns: bool) -> None:
    notices = load(tmp_path, f'<web><binding uri="http://{host}:8161"/></web>').notices
    assert [notice[:7] for notice in notices] == ["DMQ4107"] * warns
    assert not warns or "write https:// in its URL" in notices[0]


@pytest.mark.parametrize(
    ("inside", "code", "sentence"),
    [
        ("<wep/>", "DMQ4004", "did you mean 'web'?"),
        ("<web pth='x' bind='http://h:1'/>", "DMQ4004", "did you mean 'path'?"),
        ("<server config='x'/>", "DMQ4004", "did you mean 'configuration'?"),
        ("<web><bindin/><binding uri='http://h:1'/></web>", "DMQ4004", "did you mean 'binding'?"),
        ("<web/>", "DMQ4007", '<web> binds nothing; write <binding uri="http://127.0.0.1:8161"/>'),
        ("<web bind='8161'/>", "DMQ4005", "must be a URL such as http://127.0.0.1:8161"),
        ("<web bind='http://h:99999'/>", "DMQ4005", "must be a URL"),
        ("<web bind='http://h:1'><binding uri='http://h:2'/></web>", "DMQ4006", "a second <binding>"),
        ("<web bind='https://h:1'/>", "DMQ4007", "add keyStorePath=broker.pem, a PEM file"),
        ("<web bind='http://h:1' clientAuth='true'/>", "DMQ4006", "write false"),
        ("<security-manager class-name='x'/>", "DMQ4006", "artemis-users.properties"),
        ("<jaas-security certificate-domain='activemq-cert'/>", "DMQ4007", "there is no cert-users.properties beside"),
        ("<server configuration='file:/x/other.xml'/>", "DMQ4005", "etc/broker.xml is what is read"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_remedy(tmp_path: Path, inside: str, code: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, inside)
    assert caught.value.code == code
    assert "/bootstrap.xml:2: " in caught.value.message
    assert sentence in caught.value.message


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.xml").write_text("<broker/>")
    with pytest.raises(ConfigurationError, match=r":1: the root is <broker>; write <broker xmlns="):
        load_bootstrap_xml(tmp_path / "bootstrap.xml", {})


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """Beside bootstrap.xml, where relative paths begin."""
    return make_stores(tmp_path)


def https(attributes: str) -> str:
    return f'<web><binding name="artemis" uri="https://localhost:${{port}}" {attributes}/></web>'


def test_https_is_read_with_the_names_of_artemis(tmp_path: Path, stores: Stores) -> None:
    loaded = load(
        tmp_path,
        https(
            'keyStorePath="server.pem" keyStoreType="PEM" keyStorePassword="hunter2" trustStorePath="authority.pem" '
            'trustStoreType="PEMCA" trustStorePassword="x" clientAuth="true" includedTLSProtocols="TLSv1.2,TLSv1.3" '
            'includedCipherSuites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256" '
            'sslAutoReload="true" sniHostCheck="false" sniRequired="false"'
        ),
    )
    tls = TlsSettings(
        key_store_path=str(stores.server),
        key_store_password="hunter2",
        need_client_auth=True,
        trust_store_path=str(stores.authority),
        trust_store_type="PEMCA",
        enabled_protocols=("TLSv1.2", "TLSv1.3"),
        enabled_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
        auto_reload=True,
    )
    assert loaded.web == WebBind("localhost", 9000, tls)
    assert loaded.web.url == "https://localhost:9000"
    (notice,) = loaded.notices
    assert notice.endswith("ignored: trustStorePassword")


def test_the_older_form_speaks_tls_too(tmp_path: Path, stores: Stores) -> None:
    loaded = load(tmp_path, f"<web bind='https://[::1]:0' keyStorePath='file:{stores.server}'/>")
    assert loaded.web == WebBind("::1", 0, TlsSettings(str(stores.server)))
    assert loaded.web.url == "https://[::1]:0"


@pytest.mark.parametrize(
    ("attributes", "left"),
    [
        ("excludedTLSProtocols='TLSv1,TLSv1.1'", ("TLSv1.2", "TLSv1.3")),
        ("excludedTLSProtocols='SSLv3,TLSv1.2'", ("TLSv1.3",)),
        ("includedTLSProtocols='TLSv1.2,TLSv1.3' excludedTLSProtocols='TLSv1.3'", ("TLSv1.2",)),
    ],
)
def test_excluded_versions_are_not_spoken(tmp_path: Path, stores: Stores, attributes: str, left: tuple[str]) -> None:
    web = load(tmp_path, https(f"keyStorePath='server.pem' {attributes}")).web
    assert web is not None
    assert web.tls is not None
    assert web.tls.enabled_protocols == left


@pytest.mark.parametrize(
    ("attributes", "code", "sentence"),
    [
        ("", "DMQ4007", "the HTTP interface is at https:// without a certificate; add keyStorePath"),
        ("keyStorePath=''", "DMQ4005", "'keyStorePath' of <binding> is '' but must be given"),
        ("keyStorePath='gone.pem'", "DMQ6107", "the HTTP interface can't speak TLS: the key store"),
        ("keyStorePath='server.pem' keyStoreType='JKS'", "DMQ6107", "keytool -importkeystore"),
        ("keyStorePath='server.pem' keyStorePassword='ENC(x)'", "DMQ6107", "is masked"),
        ("keyStorePath='server.pem' clientAuth='true'", "DMQ6107", "clientAuth needs trustStorePath"),
        ("keyStorePath='server.pem' clientAuth='maybe'", "DMQ4005", "'clientAuth' of <binding> is 'maybe' but must be"),
        (
            "keyStorePath='server.pem' includedTLSProtocols='TLSv1.1'",
            "DMQ6107",
            "includedTLSProtocols has TLSv1.1, which",
        ),
        (
            "keyStorePath='server.pem' includedCipherSuites='TLS_NO'",
            "DMQ6107",
            "includedCipherSuites has 'TLS_NO', which",
        ),
        (
            "keyStorePath='server.pem' includedCipherSuites='TLS_RSA_WITH_AES_128_GCM_SHA256'",
            "DMQ6107",
            "includedCipherSuites and includedTLSProtocols must fit",
        ),
        ("keyStorePath='server.pem' excludedTLSProtocols='TLSv1.4'", "DMQ4004", "did you mean 'TLSv1"),
        ("keyStorePath='server.pem' excludedTLSProtocols='TLSv1.2,TLSv1.3'", "DMQ4005", "leaves no version"),
        ("keyStorePath='server.pem' excludedCipherSuites='TLS_RSA.*'", "DMQ4006", "with includedCipherSuites"),
        ("keyStorePath='server.pem' sniHostCheck='true'", "DMQ4006", "requests for other names would be served"),
        ("keyStorePath='server.pem' sniRequired='true'", "DMQ4006", "write false"),
        ("keyStorePath='server.pem' needClientAuth='true'", "DMQ4004", "unknown attribute 'needClientAuth'"),
    ],
)
def test_a_mistake_in_tls_stops_the_start(
    tmp_path: Path, stores: Stores, attributes: str, code: str, sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, https(attributes))
    assert caught.value.code == code
    assert "/bootstrap.xml:2: " in caught.value.message
    assert sentence in caught.value.message


def test_stores_without_https_are_of_no_use(tmp_path: Path) -> None:
    loaded = load(tmp_path, '<web><binding uri="http://localhost:1" keyStorePath="x.pem" clientAuth="false"/></web>')
    assert loaded.web == WebBind("localhost", 1)
    (notice,) = loaded.notices
    assert notice.startswith("DMQ6100")
    assert "write https://" in notice


def test_a_certificate_that_expires_soon_is_named(tmp_path: Path) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=5)
    write_identity(trustme.CA(), tmp_path / "server.pem", not_after=soon)
    (notice,) = load(tmp_path, https("keyStorePath='server.pem'")).notices
    assert "DMQ6108" in notice
    assert "the certificate of the HTTP interface expires" in notice
