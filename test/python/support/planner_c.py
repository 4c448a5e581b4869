"""The planner's C interface, called from Python."""

import ctypes
import json
import os
from pathlib import Path

OK, NO_PLAN, BAD_INPUT = 0, 1, 2


def load_library():
    folder = Path(os.environ["NEUROSHARD_BUILD_DIR"], "lib")
    library = ctypes.CDLL(str(folder / "libneuroshard_planner_c.so"))
    library.neuroshardStringFree.argtypes = [ctypes.c_void_p]
    library.neuroshardPlan.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p,
                                       ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                                       ctypes.POINTER(ctypes.c_void_p)]
    return library


def plan_in_c(library, workload, **options):
    """The status, and the result or the error."""
    result, error = ctypes.c_void_p(), ctypes.c_void_p()
    status = library.neuroshardPlan(workload.encode(), json.dumps(options).encode(), None, None,
                                    ctypes.byref(result), ctypes.byref(error))
    assert bool(result) == (status == OK) and bool(error) == (status != OK)
    text = ctypes.string_at((result if status == OK else error).value)
    library.neuroshardStringFree(result)
    library.neuroshardStringFree(error)
    return status, json.loads(text)
