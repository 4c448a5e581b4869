"""Loads the carried runtime libraries; builds those that do not load."""

import ctypes

import building


def run(context):
    for name in building.LIBRARIES:
        context.attempt(name, lambda name=name: load_or_build(context, name))


def load_or_build(context, name):
    path = context.artifacts / "lib" / name
    if context.dry and name == building.SORT:
        return {"skipped": "the emulator sorts"}
    reason = why_not_loadable(path)
    if not reason:
        return {"path": str(path), "built": False}
    target = context.work / "lib" / name
    took = building.build(name, context.artifacts, target)
    if still := why_not_loadable(target):
        raise building.BuildError(f"{target} was built here but does not load: {still}")
    return {"path": str(target), "built": True, "reason": reason, "build_s": took}


def why_not_loadable(path):
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        return str(error)
    return ""
