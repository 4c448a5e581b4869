//===- Autograd.cpp - The backward of embeddings_wait ---------------------===//
//
// The backward of a lookup is the update of its tables. `anchor` requires a
// gradient and never gets one: with it autograd calls the backward of lookups
// without another input to differentiate.
//
//===----------------------------------------------------------------------===//

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <vector>

namespace {

using Tensors = std::vector<at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;
using torch::autograd::AutogradContext;

template <typename Signature> auto findOperator(const char *name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Signature>();
}

Tensors wait(const std::string &model, const at::Tensor &token,
             const at::Tensor &ticket, const at::Tensor &ids,
             const at::Tensor &offsets, const OptionalTensor &weights,
             const OptionalTensor &anchor) {
  static auto operation =
      findOperator<decltype(wait)>("neuroshard::embeddings_wait");
  at::AutoDispatchBelowADInplaceOrView guard;
  return operation.call(model, token, ticket, ids, offsets, weights, anchor);
}

at::Tensor update(const std::string &model, const at::Tensor &token,
                  const at::Tensor &ticket, at::TensorList gradients,
                  const at::Tensor &ids) {
  static auto operation =
      findOperator<decltype(update)>("neuroshard::embeddings_update");
  return operation.call(model, token, ticket, gradients, ids);
}

struct Wait : torch::autograd::Function<Wait> {
  static Tensors forward(AutogradContext *context, const std::string &model,
                         const at::Tensor &token, const at::Tensor &ticket,
                         const at::Tensor &ids, const at::Tensor &offsets,
                         const OptionalTensor &weights,
                         const OptionalTensor &anchor) {
    context->save_for_backward({ticket, ids});
    // Not saved as a variable: autograd refuses those that were changed since,
    // as the update of another step does.
    context->saved_data["token"] = token;
    context->saved_data["model"] = model;
    context->saved_data["has_weights"] = weights && weights->requires_grad();
    return wait(model, token, ticket, ids, offsets, weights, anchor);
  }

  /// A result that the loss does not read gets a gradient of zeros.
  static Tensors backward(AutogradContext *context, Tensors gradients) {
    for (at::Tensor &gradient : gradients)
      gradient = gradient.contiguous();
    Tensors saved = context->get_saved_variables();
    at::Tensor ofWeights = update(context->saved_data["model"].toStringRef(),
                                  context->saved_data["token"].toTensor(),
                                  saved[0], gradients, saved[1]);
    bool wantsWeights = context->saved_data["has_weights"].toBool();
    return {{}, {}, {}, {}, {}, wantsWeights ? ofWeights : at::Tensor(), {}};
  }
};

Tensors waitWithBackward(const std::string &model, const at::Tensor &token,
                         const at::Tensor &ticket, const at::Tensor &ids,
                         const at::Tensor &offsets,
                         const OptionalTensor &weights,
                         const OptionalTensor &anchor) {
  return Wait::apply(model, token, ticket, ids, offsets, weights, anchor);
}

} // namespace

TORCH_LIBRARY_IMPL(neuroshard, Autograd, m) {
  m.impl("embeddings_wait", &waitWithBackward);
}
