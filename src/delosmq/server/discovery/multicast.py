"""Sockets of UDP multicast, IPv4."""

import socket

from delosmq.model.errors import LimitError


def open_receiver(group_address: str, group_port: int, local_address: str) -> socket.socket:
    """A socket that hears what is sent to a group.

    Args:
        local_address: of the interface; "" for the system's choice.

    Raises:
        LimitError: it can't be had.
    """
    made = _new(f"discovery group {group_address}:{group_port}")
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((group_address, group_port))
        membership = socket.inet_aton(group_address) + socket.inet_aton(local_address or "0.0.0.0")
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError as error:
        made.close()
        raise LimitError(
            "DMQ6611",
            f"nothing can be heard of the group {group_address}:{group_port} ({error.strerror}); choose another group"
            " or another local-bind-address",
        ) from None
    return made


def open_sender(local_address: str, local_port: int) -> socket.socket:
    """A socket that sends to groups, no farther than the network of its interface.

    Args:
        local_port: -1 for any.

    Raises:
        LimitError: it can't be had.
    """
    made = _new("broadcast group")
    try:
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        if local_address:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(local_address))
        made.bind((local_address, max(local_port, 0)))
    except OSError as error:
        made.close()
        raise LimitError(
            "DMQ6612",
            f"nothing can be sent from {local_address or 'this machine'}, port {max(local_port, 0)} ({error.strerror});"
            " choose another local-bind-address or local-bind-port",
        ) from None
    return made


def _new(what: str) -> socket.socket:
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    except OSError as error:
        raise LimitError("DMQ6613", f"{what}: there is no socket for it ({error.strerror}); close others") from None
