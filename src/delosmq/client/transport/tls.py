"""What a URL says of TLS, as Python's TLS takes it."""

import ssl

from delosmq.client.errors import unreachable
from delosmq.client.options.urls import BrokerAddress


def tls_of(address: BrokerAddress) -> ssl.SSLContext | None:
    """None for none.

    Raises:
        ConnectionLostError: DMQ9063, a file can't be read.
    """
    if address.scheme != "ssl":
        return None
    options = address.transport
    try:
        context = ssl.create_default_context(cafile=options.trust_store or None)
        if options.key_store:
            context.load_cert_chain(options.key_store, password=options.key_store_password or None)
    except OSError as error:
        raise unreachable(str(address), f"its trustStore or keyStore can't be used: {error}") from None
    if not options.verify_host_name:
        context.check_hostname = False
    return context
