"""The acceptor with TLS that each broker has beside the plain one, and a certificate of its own making for it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.java import tool
from interop.missing import Missing

_PASSWORD: Final = "interop-store"


@dataclass(frozen=True, slots=True)
class Secure:
    """Where a broker's acceptor with TLS is, and how clients know it.

    Attributes:
        store: PKCS12 with key and certificate: what Classic has as a key store, and clients as a trust store.
    """

    port: int
    store: Path

    @property
    def pem(self) -> Path:
        """The same as PEM, for DelosMQ."""
        return self.store.with_suffix(".pem")

    def make(self) -> None:
        """Write both files. Raises Missing when there is no keytool."""
        try:
            keytool = tool("keytool")
        except BrokerUnavailable as error:
            raise Missing(f"A certificate can't be made: {error}") from error
        what = ("-genkeypair", "-alias", "broker", "-keyalg", "EC", "-validity", "2", "-storetype", "PKCS12")
        who = ("-dname", "CN=interop", "-ext", "san=ip:127.0.0.1")
        where = ("-keystore", str(self.store), "-storepass", _PASSWORD)
        subprocess.run([keytool, *what, *who, *where], check=True, capture_output=True)
        key, certificate, _ = pkcs12.load_key_and_certificates(self.store.read_bytes(), _PASSWORD.encode())
        assert key is not None
        assert certificate is not None
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self.pem.write_bytes(text + certificate.public_bytes(Encoding.PEM))

    def fill(self, text: str) -> str:
        """A configuration in which the acceptor's port and files are filled in."""
        places = {"{tls_port}": str(self.port), "{store}": str(self.store), "{store_password}": _PASSWORD}
        for name, value in (places | {"{pem}": str(self.pem)}).items():
            text = text.replace(name, value)
        return text

    def environment(self) -> dict[str, str]:
        """What the programs know of it."""
        url = f"ssl://127.0.0.1:{self.port}"
        return {"INTEROP_TLS_URL": url, "INTEROP_STORE": str(self.store), "INTEROP_STORE_PASSWORD": _PASSWORD}
