"""TLS of an acceptor or of the HTTP interface: its certificate, key and trusted authorities, as a context tried once.

Source: Artemis manual, "Configuring Netty SSL"; stores are PEM here (docs/decisions/0036).
"""

import re
import ssl
import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from delosmq.config.findings import MISSING, Findings, nearest
from delosmq.model.settings import TlsSettings

STORES_WITHOUT_TLS: Final = "DMQ6100"
IN_THE_CLEAR: Final = "DMQ4107"
KEY_STORE_TYPES: Final = ("PEM", "PEMCFG")
TRUST_STORE_TYPES: Final = ("PEM", "PEMCA")

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
BROKEN_VERSIONS: Final = ("SSLv2", "SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
# PEM files are a few KiB; what is larger was named by mistake.
_MOST_STORE_BYTES: Final = 4 * 1024 * 1024
_JKS_MAGIC: Final = bytes.fromhex("feedfeed")
_DER_SEQUENCE: Final = b"0"
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_KEY: Final = b"PRIVATE KEY-----"
_SOURCE: Final = re.compile(r"source\.[^=\s]+")

# Source: X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL.
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
# Time enough to renew a certificate by hand.
_EXPIRES_SOON_DAYS: Final = 30
_SECONDS_PER_DAY: Final = 86_400


@dataclass(frozen=True)
class TlsNames:
    """How sentences name what speaks TLS, and the options of its file.

    Attributes:
        owner: such as ``acceptor 'stomp'``.
        switched_on: what its file has that makes it speak TLS, after its name.
    """

    owner: str
    switched_on: str = "has sslEnabled=true"
    enabled_protocols: str = "enabledProtocols"
    enabled_cipher_suites: str = "enabledCipherSuites"
    need_client_auth: str = "needClientAuth"


HTTP_TLS: Final = TlsNames(
    "the HTTP interface", "is at https://", "includedTLSProtocols", "includedCipherSuites", "clientAuth"
)
"""The options of a ``<binding>`` of bootstrap.xml."""


class TlsMistake(ValueError):
    """A sentence that says what is wrong with TLS settings, and the remedy."""


class CheckedTls:
    """A context for servers that has shaken hands with itself.

    Attributes:
        not_after: when the certificate ends, as OpenSSL writes it; "" when that could not be told.
    """

    def __init__(self, context: ssl.SSLContext, not_after: str) -> None:
        self.context = context
        self.not_after = not_after


def is_loopback(host: str) -> bool:
    """Whether nothing but this machine reaches a port there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_tls(
    fields: dict[str, Any], names: TlsNames, *, directory: Path, findings: Findings, line: int
) -> TlsSettings | None:
    """The settings, once a handshake with them has worked; None after noting what is wrong.

    Args:
        fields: of `TlsSettings`, those that the file names.
        directory: what relative paths are relative to.
    """
    if "key_store_path" not in fields:
        findings.add(
            MISSING,
            line,
            f"{names.owner} {names.switched_on} without a certificate; add keyStorePath=broker.pem, a PEM file with "
            "the certificate, its chain and its key",
        )
        return None
    for path in ("key_store_path", "trust_store_path"):
        if path in fields:
            fields[path] = str((directory / fields[path].removeprefix("file:")).absolute())
    settings = TlsSettings(**fields)
    try:
        checked = load_tls(settings, names)
    except TlsMistake as mistake:
        findings.add("DMQ6107", line, f"{names.owner} can't speak TLS: {mistake}")
        return None
    if checked.not_after:
        left_days = (ssl.cert_time_to_seconds(checked.not_after) - time.time()) / _SECONDS_PER_DAY
        if left_days < _EXPIRES_SOON_DAYS:
            sentence = (
                f"the certificate of {names.owner} expires on {checked.not_after}, in {left_days:.0f} days; renew it "
                "before clients refuse it"
            )
            findings.notice("DMQ6108", line, sentence)
    return settings


def load_tls(settings: TlsSettings, names: TlsNames) -> CheckedTls:
    """The context that ``settings`` describe.

    Raises:
        TlsMistake: files, formats, passwords, versions or suites are wrong, the certificate is not valid now, or no
            handshake is possible with it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_versions(context, settings.enabled_protocols, names)
    if settings.enabled_cipher_suites:
        _set_suites(context, settings.enabled_cipher_suites, names)
    _load_key(context, settings)
    # Before clients are asked for theirs: we have none to show to ourselves.
    not_after = _shake_hands(context, settings, names)
    if settings.need_client_auth or settings.want_client_auth:
        _load_trust(context, settings, names)
    return CheckedTls(context, not_after)


def files_of(settings: TlsSettings) -> list[Path]:
    """The files that `load_tls` reads."""
    files = [Path(settings.key_store_path)]
    if settings.key_store_type.upper() == "PEMCFG":
        try:
            files += _sources(files[0])
        except TlsMistake:
            return files
    if settings.trust_store_path:
        files.append(Path(settings.trust_store_path))
    return files


def _set_versions(context: ssl.SSLContext, versions: tuple[str, ...], names: TlsNames) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not versions:
        return
    option = names.enabled_protocols
    for version in versions:
        if version in BROKEN_VERSIONS:
            raise TlsMistake(f"{option} has {version}, which is broken; write TLSv1.2,TLSv1.3")
        if version not in VERSIONS:
            raise TlsMistake(
                f"{option} has {version!r}, which is unknown{nearest(version, list(VERSIONS)) or '; remove it'}"
            )
    context.minimum_version = min(VERSIONS[version] for version in versions)
    context.maximum_version = max(VERSIONS[version] for version in versions)


def _set_suites(context: ssl.SSLContext, suites: tuple[str, ...], names: TlsNames) -> None:
    option = names.enabled_cipher_suites
    everything = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    everything.set_ciphers("ALL")
    known = {suite["name"]: suite["protocol"] for suite in everything.get_ciphers()}
    chosen: list[str] = []
    newest = False
    for name in suites:
        own = name if name in known else openssl_name(name)
        if own not in known:
            remedy = nearest(own, list(known)) or "; remove it"
            raise TlsMistake(f"{option} has {name!r}, which OpenSSL doesn't know{remedy}")
        if known[own] == "TLSv1.3":
            newest = True
        else:
            chosen.append(own)
    # The suites of TLS 1.3 can't be chosen one by one, but that version can.
    if not newest:
        if context.minimum_version == ssl.TLSVersion.TLSv1_3:
            raise TlsMistake(f"{option} has no suite of TLSv1.3; add one, or TLSv1.2 to {names.enabled_protocols}")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not chosen:
        if context.maximum_version == ssl.TLSVersion.TLSv1_2:
            raise TlsMistake(f"{option} has no suite of TLSv1.2; add one, or TLSv1.3 to {names.enabled_protocols}")
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(chosen))
    except ssl.SSLError:
        raise TlsMistake(
            f"{option} has nothing that may be used: {', '.join(suites)}; leave it out for a safe choice"
        ) from None


def openssl_name(suite: str) -> str:
    """OpenSSL's name for a suite of TLS 1.2 by its IANA name, as Artemis writes it.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256 there.
    """
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return suite
    cipher = re.sub(r"^(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = cipher.split("_") if exchange == "RSA" else [*exchange.split("_"), *cipher.split("_")]
    return "-".join(parts)


def _load_key(context: ssl.SSLContext, settings: TlsSettings) -> None:
    store = Path(settings.key_store_path)
    _check_type("keyStoreType", settings.key_store_type, KEY_STORE_TYPES, store)
    if settings.key_store_password.startswith("ENC("):
        raise TlsMistake(
            "keyStorePassword is masked, and easily unmasked; write ${NAME} and set NAME in the environment"
        )
    certificates, key = store, store
    if settings.key_store_type.upper() == "PEMCFG":
        sources = _sources(store)
        with_key = [path for path in sources if _KEY in _read(path, "the key store")]
        with_certificates = [path for path in sources if _CERTIFICATE in _read(path, "the key store")]
        if len(with_key) != 1 or len(with_certificates) != 1:
            raise TlsMistake(
                f"the key store {store} must name one file with the key and one with the certificate and its chain, "
                f"but {len(with_key)} have a key and {len(with_certificates)} a certificate; put a chain into one file"
            )
        certificates, key = with_certificates[0], with_key[0]
    else:
        content = _read(store, "the key store")
        for mark, what in ((_CERTIFICATE, "certificate"), (_KEY, "private key")):
            if mark not in content:
                raise TlsMistake(
                    f"the key store {store} has no {what}; put the certificate, its chain and the key into one PEM file"
                )
    _load_chain(context, certificates, key, settings.key_store_password)


def _load_chain(context: ssl.SSLContext, certificates: Path, key: Path, password: str) -> None:
    asked = False

    def give_password() -> str:
        # Called for an encrypted key only; without this OpenSSL would ask on the terminal.
        nonlocal asked
        asked = True
        return password

    try:
        context.load_cert_chain(certificates, key, give_password)
    except (ssl.SSLError, ValueError) as wrong:
        reason = wrong.reason if isinstance(wrong, ssl.SSLError) else ""
        if asked and reason != "KEY_VALUES_MISMATCH":
            remedy = "set keyStorePassword" if not password else "correct keyStorePassword"
            raise TlsMistake(f"the key in {key} is encrypted and can't be opened; {remedy}") from None
        if reason == "KEY_VALUES_MISMATCH":
            raise TlsMistake(
                f"the key in {key} is not that of the first certificate in {certificates}; put the broker's own "
                "certificate first, and take the key it was made for"
            ) from None
        raise TlsMistake(
            f"the key store {certificates} can't be read ({(reason or 'not PEM').lower().replace('_', ' ')}); "
            f"look at it with: openssl x509 -in {certificates} -text"
        ) from None


def _load_trust(context: ssl.SSLContext, settings: TlsSettings, names: TlsNames) -> None:
    if not settings.trust_store_path:
        name = names.need_client_auth if settings.need_client_auth else "wantClientAuth"
        raise TlsMistake(
            f"{name} needs trustStorePath: a PEM file with the certificates that clients are checked against"
        )
    store = Path(settings.trust_store_path)
    _check_type("trustStoreType", settings.trust_store_type, TRUST_STORE_TYPES, store)
    if _CERTIFICATE not in _read(store, "the trust store"):
        raise TlsMistake(f"the trust store {store} has no certificate; put those of your authorities there, in PEM")
    try:
        context.load_verify_locations(store)
    except ssl.SSLError:
        raise TlsMistake(f"the trust store {store} can't be read; write it again in PEM") from None
    # As in Java, whatever is in a trust store is trusted, authority or not.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = ssl.CERT_REQUIRED if settings.need_client_auth else ssl.CERT_OPTIONAL


def _check_type(option: str, kind: str, known: tuple[str, ...], store: Path) -> None:
    if kind.upper() not in known:
        remedy = _conversion(kind.upper(), option, store)
        raise TlsMistake(f"{option} is {kind!r}, and there are {' and '.join(known)}; {remedy}")


def _conversion(kind: str, option: str, store: Path) -> str:
    part = "-nodes" if option == "keyStoreType" else "-nokeys"
    convert = f"openssl pkcs12 -in {store.with_suffix('.p12')} {part} -out {store.with_suffix('.pem')}"
    if kind == "PKCS12":
        convert = f"openssl pkcs12 -in {store} {part} -out {store.with_suffix('.pem')}"
    elif kind in ("JKS", "JCEKS"):
        convert = (
            f"keytool -importkeystore -srckeystore {store} -srcstoretype {kind} "
            f"-destkeystore {store.with_suffix('.p12')} -deststoretype PKCS12; {convert}"
        )
    return f"convert it and write PEM: {convert}"


def _read(path: Path, what: str) -> bytes:
    try:
        if path.stat().st_size > _MOST_STORE_BYTES:
            raise TlsMistake(f"{what} {path} is larger than 4 MiB; name a PEM file with certificates")
        content = path.read_bytes()
    except FileNotFoundError:
        raise TlsMistake(f"{what} {path} is missing; put it there or correct the path") from None
    except OSError as failure:
        raise TlsMistake(
            f"{what} {path} can't be read ({failure.strerror}); let the user that runs the broker read it"
        ) from None
    option = "trustStoreType" if "trust" in what else "keyStoreType"
    if content.startswith(_JKS_MAGIC):
        raise TlsMistake(f"{what} {path} is a JKS file, not PEM; {_conversion('JKS', option, path)}")
    if content.startswith(_DER_SEQUENCE) and not content.isascii():
        raise TlsMistake(f"{what} {path} is a PKCS12 file, not PEM; {_conversion('PKCS12', option, path)}")
    return content


def _sources(store: Path) -> list[Path]:
    """The files that a PEMCFG store names in its ``source.*`` lines, in their order; relative ones beside it."""
    sources: list[Path] = []
    for line in _read(store, "the key store").decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and _SOURCE.fullmatch(name.strip()):
            sources.append(store.parent / value.strip().removeprefix("file:"))
    if not sources:
        raise TlsMistake(f"the key store {store} names no files; write lines such as source.key=key.pem")
    return sources


def _shake_hands(context: ssl.SSLContext, settings: TlsSettings, names: TlsNames) -> str:
    """Connects a client to ``context`` in memory; when the certificate ends."""
    try:
        return _try_handshake(context, _first_certificate(settings))
    except ssl.SSLCertVerificationError as wrong:
        if wrong.verify_code in (_EXPIRED, _NOT_YET_VALID):
            what = "has expired" if wrong.verify_code == _EXPIRED else "is not valid yet"
            raise TlsMistake(
                f"the certificate in {settings.key_store_path} {what}, so clients would refuse it; "
                "renew it, or correct the clock of this machine"
            ) from None
        # Something about the chain that only a client with its own trust store can judge.
        return ""
    except ssl.SSLError as wrong:
        raise TlsMistake(
            f"no handshake is possible with {settings.key_store_path} "
            f"({(wrong.reason or 'unknown').lower().replace('_', ' ')}); "
            f"{names.enabled_cipher_suites} and {names.enabled_protocols} must fit the kind of its key"
        ) from None


def _first_certificate(settings: TlsSettings) -> str:
    files = files_of(settings)
    contents = [_read(path, "the key store") for path in files if str(path) != settings.trust_store_path]
    found = re.search(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", b"\n".join(contents), re.DOTALL)
    return found.group().decode("ascii", "replace") if found else ""


def _try_handshake(context: ssl.SSLContext, certificate: str) -> str:
    # A client that takes what the server offers, whatever that is.
    trial = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trial.minimum_version = ssl.TLSVersion.TLSv1_2
    trial.check_hostname = False
    trial.set_ciphers("ALL")
    trial.load_verify_locations(cadata=certificate)
    trial.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = trial.wrap_bio(to_client, to_server)
    done = False
    while not done:
        done = _step(client)
        done = _step(server) and done
    certificate_fields = client.getpeercert() or {}
    return str(certificate_fields.get("notAfter", ""))


def _step(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
