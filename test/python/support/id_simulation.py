"""A plain simulation of the maps of dynamic ids: dicts and the policy of docs/dynamic-ids.md."""

import struct

BITS = 2**64 - 1


def mix(x):
    """The finalizer of splitmix64."""
    x = (x + 0x9e3779b97f4a7c15) & BITS
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & BITS
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & BITS
    return x ^ (x >> 31)


def owner_of(id, ranks):
    return ((mix(id & BITS) >> 32) * ranks) >> 32


def map_bytes(ids):
    """What a map for so many ids takes, by the formula of docs/dynamic-ids.md."""
    places = 1
    while places < ids + ids // 2 + 1:
        places *= 2
    words, level = 0, ids
    while level > 1 or words == 0:
        level = max(1, -(-level // 64))
        words += level
    return 48 * ids + 16 * places + 8 * words


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def initial_weights(table, seed, id, dim, rows):
    """Of an id, as of a row of that number: uniform in +-1/sqrt(rows)."""
    key = mix(seed & BITS)
    for character in table.encode():
        key = mix(key ^ character)
    bound = f32(1 / rows**0.5)
    return [f32((f32(mix(mix(key ^ (id & BITS)) ^ column) >> 40) * 2.0**-23 - 1.0) * bound)
            for column in range(dim)]


class Part:
    """Of one owner. entries: {id: [row, count, last, since]}; candidates: {id: [count, last, place]}."""

    def __init__(self, rows, candidates, policy, shared_row):
        self.free, self.policy, self.shared_row = set(rows), policy, shared_row
        self.entries, self.candidates, self.last_use = {}, {}, {}
        self.free_places = set(range(candidates))
        self.batch = self.admitted = self.evicted = self.refused = self.forgotten = 0

    def order(self, id):
        row, count, last, since = self.entries[id]
        return {"lru": (last, row), "lfu": (count, last, row), "age": (since, row)}[self.policy.evict_by]

    def train(self, ids, lookup, first_held):
        """Gives [(row, id)] of the ids that got a row, and the first that was refused."""
        self.batch += 1
        unknown = []
        for id in dict.fromkeys(ids):
            if id in self.entries:
                self.entries[id][1] += 1
                self.entries[id][2] = self.batch
                self.last_use[id] = lookup
            else:
                unknown.append(id)
        due = self.count(unknown)
        if self.policy.when_full == "evict" and len(due) > len(self.free):
            there = [id for id in self.entries if self.last_use[id] < first_held]
            for id in sorted(there, key=self.order)[:len(due) - len(self.free)]:
                self.free.add(self.entries.pop(id)[0])
                self.evicted += 1
        new, refused = [], []
        for id, count in due:
            if not self.free:
                self.refused += 1
                refused.append(id)
                continue
            row = min(self.free)
            self.free.remove(row)
            self.entries[id] = [row, count, self.batch, self.batch]
            self.last_use[id] = lookup
            new.append((row, id))
            self.admitted += 1
            if id in self.candidates:
                self.free_places.add(self.candidates.pop(id)[2])
        return new, refused[0] if refused and self.policy.when_full == "refuse" else None

    def count(self, unknown):
        if self.policy.admit_after == 1:
            return [(id, 1) for id in unknown]
        due, unseen = [], []
        for id in unknown:
            if id not in self.candidates:
                unseen.append(id)
                continue
            one = self.candidates[id]
            one[0], one[1] = one[0] + 1, self.batch
            if one[0] >= self.policy.admit_after:
                due.append((id, one[0]))
        old = sorted((one[1], one[2], id) for id, one in self.candidates.items() if one[1] < self.batch)
        for _, place, id in old[:max(0, len(unseen) - len(self.free_places))]:
            del self.candidates[id]
            self.free_places.add(place)
            self.forgotten += 1
        for id in unseen:
            if self.free_places:
                place = min(self.free_places)
                self.free_places.remove(place)
                self.candidates[id] = [1, self.batch, place]
            else:
                self.forgotten += 1
        return due

    def row(self, id):
        return self.entries[id][0] if id in self.entries else self.shared_row


class Maps:
    """Of a table on all ranks."""

    def __init__(self, rows, ranks, policy):
        def share(count, rank):
            return range(count * rank // ranks, count * (rank + 1) // ranks)

        self.ranks, self.lookup = ranks, 0
        candidates = 0 if policy.admit_after == 1 else policy.candidates or rows
        self.parts = [Part(share(rows - 1, rank), len(share(candidates, rank)), policy, rows - 1)
                      for rank in range(ranks)]

    def train(self, batches, first_held=None):
        """batches: the ids of each rank. first_held: the first lookup whose step is not over. Gives
        [(row, id)] of the ids that got a row."""
        self.lookup += 1
        new, self.refusal = [], None
        for rank, part in enumerate(self.parts):
            own = [id for batch in batches for id in batch if owner_of(id, self.ranks) == rank]
            got, refused = part.train(own, self.lookup, self.lookup if first_held is None else first_held)
            new += got
            if refused is not None and self.refusal is None:
                self.refusal = rank, refused
        return new

    def find(self, batches):
        """A lookup without training: it uses rows."""
        self.lookup += 1
        for batch in batches:
            for id in batch:
                part = self.parts[owner_of(id, self.ranks)]
                if id in part.entries:
                    part.last_use[id] = self.lookup

    def row(self, id):
        return self.parts[owner_of(id, self.ranks)].row(id)
