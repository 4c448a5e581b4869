"""The hashes of an artifact, for tests that change its files: what lies behind the hashes must
notice a change, too."""

import ctypes
import json
import re
from functools import cache

SEAL = ',\n "xxh3": "{}"\n}}\n'


class _Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


@cache
def _library():
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.XXH3_128bits.restype = _Hash128
    return library


def hash_of(content):
    found = _library().XXH3_128bits(content, len(content))
    return f"{found.high:016x}{found.low:016x}"


def unsealed(text):
    """A manifest's text without its own hash."""
    return re.sub(r',\n "xxh3": "[0-9a-f]{32}"\n}\n$', "\n}\n", text)


def sealed(text):
    """The text of a manifest with its own hash at the end; other text as it is."""
    fields, brace, rest = text.rpartition("}")
    if not brace or rest.strip():
        return text
    fields = fields.rstrip(" \n")
    return fields + SEAL.format(hash_of(fields.encode(errors="surrogatepass")))


def read_manifest(artifact):
    """The manifest without hashes, to be changed and written by write_manifest."""
    manifest = json.loads((artifact / "manifest.json").read_text())
    del manifest["xxh3"], manifest["files"]
    return manifest


def write_manifest(artifact, manifest):
    """Writes a manifest with the hashes of the files that are there."""
    files = {str(path.relative_to(artifact)): hash_of(path.read_bytes())
             for path in sorted(artifact.rglob("*"))
             if path.is_file() and path.name != "manifest.json"}
    text = json.dumps({**manifest, "files": files})
    (artifact / "manifest.json").write_text(sealed(text))


def seal(artifact):
    """Makes changed files those of the artifact."""
    write_manifest(artifact, read_manifest(artifact))
