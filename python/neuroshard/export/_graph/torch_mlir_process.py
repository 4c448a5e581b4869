"""python -m neuroshard.export._graph.torch_mlir_process dense.pt2 NAME: writes linalg on tensors.

A process of its own: torch-mlir brings another LLVM than the rest of NeuroShard."""

import sys


def main() -> None:
    import torch
    from torch_mlir import fx

    program = torch.export.load(sys.argv[1])
    module = fx.export_and_import(program, output_type="linalg-on-tensors", func_name=sys.argv[2])
    sys.stdout.write(module.operation.get_asm(enable_debug_info=True))


if __name__ == "__main__":
    main()
