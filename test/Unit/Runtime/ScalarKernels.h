//===- ScalarKernels.h - Plain loops with the kernel ABI -------*- C++ -*-===//
//
// Stand-ins for compiled kernels: one scalar loop per kernel, for dims up to
// kMaxDim, all element types, id types and optimizers.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_SCALARKERNELS_H
#define NEUROSHARD_TEST_RUNTIME_SCALARKERNELS_H

#include "neuroshard/Runtime/KernelABI.h"

#include <cstdint>

namespace neuroshard::test {

constexpr int kMaxDim = 12;

/// Optimizer constants of all test tables.
constexpr float kEpsilon = 1e-6f;
constexpr float kBeta1 = 0.875f;
constexpr float kBeta2 = 0.96875f;

enum class Element { F32, F16, BF16 };
enum class Optimizer { None, Sgd, Adagrad, RowwiseAdagrad, Adam };

float loadElement(Element type, const void *row, int64_t column);
void storeElement(Element type, void *row, int64_t column, float value);

nsrt_lookup_kernel forwardKernel(int dim, Element, int idBytes, bool pooled,
                                 bool weighted);
nsrt_weight_gradient_kernel weightGradientKernel(int dim, Element, int idBytes);
nsrt_update_kernel updateKernel(int dim, Element, Optimizer, bool weighted);
nsrt_reduce_kernel reduceKernel(int dim, bool weighted);
/// `dim` columns of a table with `tableDim`.
nsrt_apply_kernel applyKernel(int dim, int tableDim, Element);

/// One optimizer step of one element; kernels and oracle share the formula,
/// the runtime is what is tested. `mean` is the mean of squared gradients of
/// the row (row-wise optimizer only).
void stepElement(Optimizer, float stepSize, float gradient, float mean,
                 float &weight, float *state0, float *state1);

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_SCALARKERNELS_H
