"""What a URL says of TLS, as Python's TLS takes it."""

import ssl

from delosmq.client.errors import wrong_option_value
from delosmq.client.options.urls import BrokerAddress


def tls_of(address: BrokerAddress) -> ssl.SSLContext | None:
    """None for none.

    Raises:
        ClientOptionError: DMQ9051, a file can't be read.
    """
    if address.scheme != "ssl":
        return None
    options = address.transport
    try:
        context = ssl.create_default_context(cafile=options.trust_store or None)
    except OSError as error:
        raise wrong_option_value(str(address), "transport.trustStore", options.trust_store, _readable(error)) from None
    try:
        if options.key_store:
            context.load_cert_chain(options.key_store, password=options.key_store_password or None)
    except OSError as error:
        raise wrong_option_value(str(address), "transport.keyStore", options.key_store, _readable(error)) from None
    if not options.verify_host_name:
        context.check_hostname = False
    return context


def _readable(error: OSError) -> str:
    return f"a PEM file that can be read: {error}"
