"""Ports for ranks that do not have torchrun."""

import socket


def reserve_port():
    """A bound socket. While it is open the system gives its port to nobody else, and a store of
    torch.distributed can listen there."""
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", 0))
    return place


def port_of(place):
    """The port of a socket, as a string."""
    return str(place.getsockname()[1])
