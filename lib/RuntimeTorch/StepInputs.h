//===- StepInputs.h - Tensors that a step takes -----------------*- C++ -*-===//
//
// A step takes the tensors of all inputs of an artifact in one list: of each
// input its ids, its offsets, i64 [features * batch + 1], and, if it is
// weighted, a weight for each id.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_STEPINPUTS_H
#define NEUROSHARD_LIB_RUNTIMETORCH_STEPINPUTS_H

#include "neuroshard/Artifact/Manifest.h"

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <string>
#include <vector>

namespace neuroshard::runtime {

/// What a message calls a tensor; only asked for if there is one.
using NameOf = c10::function_ref<std::string()>;

/// Throws a ValueError for a tensor that is not on `place` with this type and
/// number of dimensions.
void checkKind(const at::Tensor &tensor, at::ScalarType type, int64_t dims,
               c10::Device place, NameOf name);
/// The same for one that is not contiguous, either.
void checkDense(const at::Tensor &tensor, at::ScalarType type, int64_t dims,
                c10::Device place, NameOf name);

class StepInputs {
public:
  /// `exchanges`: of the inputs in the order of the list.
  StepInputs(std::vector<const ExchangeSpec *> exchanges, c10::Device place)
      : exchanges(std::move(exchanges)), place(place) {}

  /// Throws a ValueError.
  void check(const std::vector<at::Tensor> &tensors) const;
  /// Inputs without samples.
  std::vector<at::Tensor> makeEmpty() const;

private:
  std::vector<const ExchangeSpec *> exchanges;
  c10::Device place;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_STEPINPUTS_H
