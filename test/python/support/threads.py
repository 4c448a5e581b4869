"""Calls from several threads at once."""

import threading


def in_threads(function, arguments, limit_s=None):
    """The results or errors of the calls, in order. limit_s: how long to wait for each thread."""
    results = [None] * len(arguments)

    def call(number, one):
        try:
            results[number] = function(*one)
        except BaseException as error:  # whatever it is
            results[number] = error

    threads = [threading.Thread(target=call, args=item) for item in enumerate(arguments)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(limit_s)
        assert not one.is_alive()
    return results
