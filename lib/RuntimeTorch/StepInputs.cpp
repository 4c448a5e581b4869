//===- StepInputs.cpp - Tensors that a step takes -------------------------===//

#include "StepInputs.h"

#include "neuroshard/Artifact/InputName.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

namespace neuroshard::runtime {
namespace {

at::ScalarType typeOfIds(const ExchangeSpec &exchange) {
  return exchange.idType == IdType::I64 ? at::kLong : at::kInt;
}

void checkOffsets(const ExchangeSpec &exchange, const at::Tensor &offsets) {
  auto features = static_cast<int64_t>(exchange.features.size());
  TORCH_CHECK_VALUE(offsets.numel() > 0, inputName(exchange),
                    "offsets: expected at least one value, found none");
  TORCH_CHECK_VALUE(offsets.numel() % features == 1 || features == 1,
                    inputName(exchange),
                    "offsets: expected features * batch + 1 = ", features,
                    " * batch + 1 values, found ", offsets.numel());
}

} // namespace

void checkKind(const at::Tensor &tensor, at::ScalarType type, int64_t dims,
               c10::Device place, NameOf name) {
  TORCH_CHECK_VALUE(tensor.device() == place, name(), ": expected a tensor on ",
                    place.is_cpu() ? "the CPU" : place.str(), ", found one on ",
                    tensor.device());
  TORCH_CHECK_VALUE(tensor.scalar_type() == type, name(), ": expected ", type,
                    ", found ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.dim() == dims, name(), ": expected ", dims,
                    " dimensions, found shape ", tensor.sizes());
}

void checkDense(const at::Tensor &tensor, at::ScalarType type, int64_t dims,
                c10::Device place, NameOf name) {
  checkKind(tensor, type, dims, place, name);
  TORCH_CHECK_VALUE(tensor.is_contiguous(), name(),
                    ": expected a contiguous tensor");
}

void StepInputs::check(const std::vector<at::Tensor> &tensors) const {
  size_t count = 0;
  auto next = [&](const ExchangeSpec &exchange, const char *what,
                  at::ScalarType type) -> const at::Tensor & {
    auto name = [&] { return inputName(exchange) + what; };
    TORCH_CHECK_VALUE(count < tensors.size(), name(),
                      ": expected one for each id, found none");
    checkDense(tensors[count], type, 1, place, name);
    return tensors[count++];
  };
  for (const ExchangeSpec *exchange : exchanges) {
    const at::Tensor &ids = next(*exchange, "ids", typeOfIds(*exchange));
    checkOffsets(*exchange, next(*exchange, "offsets", at::kLong));
    if (!exchange->weighted)
      continue;
    const at::Tensor &weights = next(*exchange, "weights", at::kFloat);
    TORCH_CHECK_VALUE(weights.numel() == ids.numel(), inputName(*exchange),
                      "weights: expected one for each of the ", ids.numel(),
                      " ids, found ", weights.numel());
  }
  TORCH_CHECK_VALUE(count == tensors.size(), "expected ", count,
                    " tensors of ids, offsets and weights, found ",
                    tensors.size());
}

std::vector<at::Tensor> StepInputs::makeEmpty() const {
  std::vector<at::Tensor> tensors;
  for (const ExchangeSpec *exchange : exchanges) {
    auto options = at::TensorOptions().device(place);
    tensors.push_back(at::empty({0}, options.dtype(typeOfIds(*exchange))));
    tensors.push_back(at::zeros({1}, options.dtype(at::kLong)));
    if (exchange->weighted)
      tensors.push_back(at::empty({0}, options.dtype(at::kFloat)));
  }
  return tensors;
}

} // namespace neuroshard::runtime
