"""bootstrap.xml: where the HTTP interface listens."""

from pathlib import Path

import pytest

from delosmq.config.bootstrap import LoadedBootstrap, load_bootstrap_xml
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import WebBind


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
    inside = '<web path="w"><binding name="b" uri="http://h:1"><app url="c"/><app url="d"/></binding></web>'
    (notice,) = load(tmp_path, inside).notices
    assert notice.startswith("DMQ4101")
    assert notice.endswith("ignored: path, app")


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
        ("<web bind='https://h:1'/>", "DMQ4006", "put a TLS proxy in front"),
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
