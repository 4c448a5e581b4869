"""Modules before they are raised, run as they are: MLIR's own passes and LLVM, none of ours."""

import ctypes
import itertools

from support.host import DESCRIPTORS, TENSORS, HostMemory, describe, read_tensor
from support.mutants import llvm_tool, run

LOWERING = ("builtin.module(canonicalize,convert-elementwise-to-linalg,one-shot-bufferize{bufferize-function-boundaries "
            "function-boundary-type-conversion=identity-layout-map},"
            "func.func(convert-linalg-to-loops,scf-forall-to-for),expand-strided-metadata,"
            "lower-affine,convert-scf-to-cf,func.func(llvm-request-c-wrappers),"
            "convert-arith-to-llvm,convert-index-to-llvm,finalize-memref-to-llvm,"
            "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)")
NUMBERS = itertools.count()


def compile_program(source, folder):
    """The module of the file `source` as a shared library."""
    number = next(NUMBERS)
    lowered, ir, optimized, code, library = (
        folder / f"before{number}.{kind}" for kind in ("mlir", "ll", "bc", "o", "so"))
    run(llvm_tool("mlir-opt"), source, f"--pass-pipeline={LOWERING}", "-o", lowered)
    run(llvm_tool("mlir-translate"), "--mlir-to-llvmir", lowered, "-o", ir)
    run(llvm_tool("opt"), "-passes=default<O1>", "-mattr=+f16c", ir, "-o", optimized)
    run(llvm_tool("llc"), "-O1", "-filetype=obj", "-relocation-model=pic", "-mattr=+f16c",
        optimized, "-o", code)
    run(llvm_tool("ld.lld"), "-shared", "-z", "noexecstack", "-o", library, code)
    return ctypes.CDLL(str(library))


def call_forward(library, arguments, results):
    """Calls @forward. results: (rank, element type) of each. Their memory stays with the
    process. The program may write to what it takes: it gets copies."""
    fields = [(f"r{number}", DESCRIPTORS[rank]) for number, (rank, _) in enumerate(results)]
    returned = type("Results", (ctypes.Structure,), {"_fields_": fields})()
    memory = HostMemory()
    copies = [argument.clone() for argument in arguments]
    described = [describe(argument, memory) for argument in copies]
    library._mlir_ciface_forward(ctypes.byref(returned), *map(ctypes.byref, described))
    return [read_tensor(getattr(returned, f"r{number}"), TENSORS[element], memory)
            for number, (_, element) in enumerate(results)]
