//===- Instructions.h - Instruction sets of inference -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_LAYERS_INSTRUCTIONS_H
#define NEUROSHARD_LIB_COSTMODEL_LAYERS_INSTRUCTIONS_H

namespace neuroshard::dense {

enum class Instructions { Baseline, AVX2, AVX512 };

/// The widest set that this machine has.
Instructions bestInstructions();

/// Calls visit(variant) for the one of an instruction set.
template <typename Baseline, typename AVX2, typename AVX512, typename Visit>
void dispatch(Instructions instructions, Visit visit) {
  if (instructions == Instructions::AVX512)
    return visit(AVX512());
  if (instructions == Instructions::AVX2)
    return visit(AVX2());
  visit(Baseline());
}

} // namespace neuroshard::dense

#endif // NEUROSHARD_LIB_COSTMODEL_LAYERS_INSTRUCTIONS_H
