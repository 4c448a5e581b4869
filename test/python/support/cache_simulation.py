"""A row cache as lists: which rows it has after each batch, and what it fetched and wrote."""

WAYS = 32


class Cache:
    def __init__(self, rows, policy):
        self.sets = [[None] * WAYS for _ in range(rows // WAYS)]
        self.policy, self.batch = policy, 0
        self.in_use = {}  # by row: how many batches
        self.spilled = set()
        self.changed = set()
        self.rows = self.hits = self.written = self.most_spilled = 0

    def set_of(self, row):
        spread = row * 0x9E3779B1 % 2**32
        return self.sets[spread * len(self.sets) >> 32]

    def find(self, row):
        return next((one for one in self.set_of(row) if one and one["row"] == row), None)

    def fetch(self, ids):
        """Brings the rows of a batch. Gives what release() takes."""
        self.batch += 1
        rows = list(dict.fromkeys(ids))
        there = [row for row in rows if self.find(row) or row in self.spilled]
        self.rows, self.hits = self.rows + len(rows), self.hits + len(there)
        for row in rows:
            self.in_use[row] = self.in_use.get(row, 0) + (row in there)
        for row in there:
            if found := self.find(row):
                found["last"] = self.batch
                found["batches"] += 1
        for row in rows:
            if row not in there:
                self.admit(row)
                self.in_use[row] = 1
        self.most_spilled = max(self.most_spilled, len(self.spilled))
        return rows

    def admit(self, row):
        ways = self.set_of(row)
        free = [way for way in range(WAYS) if ways[way] is None]
        idle = [way for way in range(WAYS) if ways[way] and not self.in_use.get(ways[way]["row"])]
        if not free and not idle:
            self.spilled.add(row)
            return
        way = free[0] if free else min(idle, key=lambda way: self.rank(ways[way]))
        if ways[way] and ways[way]["row"] in self.changed:
            self.write(ways[way]["row"])
        ways[way] = {"row": row, "last": self.batch, "batches": 1}

    def rank(self, one):
        return (one["batches"], one["last"]) if self.policy == "lfu" else one["last"]

    def write(self, row):
        self.written += 1
        self.changed.discard(row)

    def update(self, rows):
        self.changed.update(rows)

    def release(self, rows):
        for row in rows:
            self.in_use[row] -= 1
            if not self.in_use[row] and row in self.spilled:
                self.spilled.discard(row)
                if row in self.changed:
                    self.write(row)


def simulate(batches, rows, policy, depth):
    """The cache after training with these ids, the next depth - 1 batches brought ahead; all tables are
    read at the end."""
    cache, ahead = Cache(rows, policy), []
    for number in range(len(batches)):
        while len(ahead) < min(depth, len(batches) - number):
            ahead.append(cache.fetch(batches[number + len(ahead)]))
        used = ahead.pop(0)
        cache.update(used)
        cache.release(used)
    for row in list(cache.changed):
        cache.write(row)
    return cache
