"""Prints the progress of a collection and the time left to stderr."""

import sys
import time

FIRST_LINE_S = 2
LINE_EVERY_S = 10


def span(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


class Progress:
    """On a terminal one line that is rewritten, elsewhere a line now and then."""

    def __init__(self, name, total):
        self.name = name
        self.total = total
        self.begin = time.monotonic()
        self.next_line = self.begin + FIRST_LINE_S
        self.terminal = sys.stderr.isatty()

    def show(self, done, note):
        now = time.monotonic()
        if not self.terminal and now < self.next_line and done < self.total:
            return
        self.next_line = now + LINE_EVERY_S
        left = (now - self.begin) / max(done, 1) * (self.total - done)
        text = f"{self.name}: {done} of {self.total}, {span(left)} left{note}"
        if self.terminal:
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self):
        if self.terminal:
            print(file=sys.stderr)
