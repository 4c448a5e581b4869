"""Changes values of JSON documents, at random."""

import json

SCALARS = (None, True, False, "", "a", "f32", 0, 1, -1, 2, 65536, 2**31, 2**53, 2**63, 2**64, 0.5,
           -1.5, 1e308, [], {}, [0], {"a": 0}, "x" * 300)


def change(document, random):
    """A copy with some values replaced, exchanged, removed or repeated."""
    document = json.loads(json.dumps(document))
    for _ in range(random.randint(1, 3)):
        places = list(_places(document))
        holder, key = random.choice(places)
        kind = random.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(key, holder[key])
        elif kind == 2:
            other, at = random.choice(places)
            holder[key] = json.loads(json.dumps(other[at]))
        elif kind == 3 and isinstance(holder[key], int):
            holder[key] += random.choice((-1, 1, 7))
        elif kind == 3 and isinstance(holder[key], str) and holder[key]:
            at = random.randrange(len(holder[key]))
            holder[key] = holder[key][:at] + chr(random.randrange(32, 300)) + holder[key][at + 1:]
        else:
            holder[key] = random.choice(SCALARS)
    return document


def _places(value):
    """Every (list or object, index or key) in a document."""
    for key, one in (value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(one, (dict, list)):
            yield from _places(one)
