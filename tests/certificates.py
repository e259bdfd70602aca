"""Certificates for tests, made anew each time: an authority, and what it signs."""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Stores:
    """PEM files in a directory.

    Attributes:
        server: certificate and key of the broker; client: of a client; stranger: of a client another authority signed.
        authority: who signed the first two.
    """

    directory: Path
    server: Path
    client: Path
    stranger: Path
    authority: Path

    def client_context(self, identity: Path | None = None) -> ssl.SSLContext:
        """For a client that trusts the authority, and has a certificate or not."""
        context = ssl.create_default_context(cafile=self.authority)
        if identity is not None:
            context.load_cert_chain(identity)
        return context


def make_stores(directory: Path) -> Stores:
    """An authority and three certificates, as files in ``directory``."""
    ours, theirs = trustme.CA(), trustme.CA()
    authority = directory / "authority.pem"
    ours.cert_pem.write_to_path(str(authority))
    return Stores(
        directory,
        write_identity(ours, directory / "server.pem"),
        write_identity(ours, directory / "client.pem", "client@test"),
        write_identity(theirs, directory / "stranger.pem", "stranger@test"),
        authority,
    )


def write_identity(
    authority: trustme.CA, path: Path, name: str = LOOPBACK, *, not_after: datetime.datetime | None = None
) -> Path:
    """A certificate with its key in one PEM file."""
    certificate = authority.issue_cert(name, not_after=not_after)
    path.write_bytes(certificate.private_key_and_cert_chain_pem.bytes())
    return path
