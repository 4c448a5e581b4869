"""Changes pickles opcode by opcode, at random."""

import pickle
import pickletools

NUMBERS = (0, 1, 2, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1)
CLASSES = (("os", "system"), ("builtins", "eval"), ("builtins", "getattr"), ("torch", "Size"),
           ("torch", "load"), ("torch", "float32"), ("collections", "OrderedDict"),
           ("torch.distributed.checkpoint.metadata", "Metadata"))


def pieces_of(data):
    """The bytes of each opcode with its argument; the rest of broken data as one."""
    starts = []
    try:
        for _, _, position in pickletools.genops(data):
            starts.append(position)
    except Exception:  # whatever broken data leads to
        pass
    return [data[begin:end] for begin, end in zip(starts, [*starts[1:], len(data)])]


def change(data, random):
    """A changed pickle, with frames only if the old ones still fit."""
    pieces = pieces_of(data)
    if random.random() < 0.9:
        pieces = [one for one in pieces if one[:1] != pickle.FRAME]
    for _ in range(random.randint(1, 4)):
        if pieces:
            _change_one(pieces, random)
    changed = bytearray(b"".join(pieces))
    if changed and random.random() < 0.1:
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _change_one(pieces, random):
    at, other = random.randrange(len(pieces)), random.randrange(len(pieces))
    kind = random.randrange(8)
    if kind == 0:
        del pieces[at]
    elif kind == 1:
        pieces[at] = pieces[at] * random.choice((2, 3, 100, 20000))
    elif kind == 2:
        pieces[at], pieces[other] = pieces[other], pieces[at]
    elif kind == 3:
        pieces[at] = pieces[other]
    elif kind == 4:
        pieces.insert(at, _new_piece(random))
    elif kind == 5:
        module, name = random.choice(CLASSES)
        pieces.insert(at, f"c{module}\n{name}\n".encode())
    else:
        _change_argument(pieces, at, random)


def _new_piece(random):
    number = random.choice(NUMBERS)
    return random.choice((
        pickle.LONG_BINPUT + number.to_bytes(4, "little"),
        pickle.LONG_BINGET + number.to_bytes(4, "little"),
        pickle.BINBYTES8 + number.to_bytes(8, "little"),
        pickle.BYTEARRAY8 + (number << random.randrange(32)).to_bytes(8, "little"),
        pickle.BININT + number.to_bytes(4, "little"),
        pickle.LONG1 + b"\x09" + bytes(8) + b"\x01",
        b"(", b"t", b"}", b"]", b")", b"R", b"\x81", b"b", b"s", b"u", b"a", b"e", b"0", b"2",
        b"\x85", b"\x85" * 20000, b"\x93", b"\x94", b"N", b"\x88", b"Q", b"\x90", b"\x91", b"."))


def _change_argument(pieces, at, random):
    """Puts another number of the same width, or other bytes, behind an opcode."""
    opcode, argument = pieces[at][:1], bytearray(pieces[at][1:])
    if not argument:
        return
    if len(argument) in (1, 2, 4, 8):
        argument = (random.choice(NUMBERS) % (1 << 8 * len(argument))).to_bytes(
            len(argument), "little")
    else:
        argument[random.randrange(len(argument))] = random.randrange(256)
    pieces[at] = opcode + bytes(argument)
