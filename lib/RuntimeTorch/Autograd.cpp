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
             const at::Tensor &ticket, at::TensorList inputs,
             const OptionalTensor &anchor) {
  static auto operation =
      findOperator<decltype(wait)>("neuroshard::embeddings_wait");
  at::AutoDispatchBelowADInplaceOrView guard;
  return operation.call(model, token, ticket, inputs, anchor);
}

at::Tensor update(const std::string &model, const at::Tensor &token,
                  const at::Tensor &ticket, at::TensorList gradients,
                  at::TensorList inputs) {
  static auto operation =
      findOperator<decltype(update)>("neuroshard::embeddings_update");
  return operation.call(model, token, ticket, gradients, inputs);
}

/// Weights are the inputs of their type: ids and offsets are integers.
bool isWeights(const at::Tensor &input) { return input.is_floating_point(); }

struct Wait : torch::autograd::Function<Wait> {
  static Tensors forward(AutogradContext *context, const std::string &model,
                         const at::Tensor &token, const at::Tensor &ticket,
                         at::TensorList inputs, const OptionalTensor &anchor) {
    Tensors saved = {ticket};
    saved.insert(saved.end(), inputs.begin(), inputs.end());
    context->save_for_backward(std::move(saved));
    // Not saved as a variable: autograd refuses those that were changed since,
    // as the update of another step does.
    context->saved_data["token"] = token;
    context->saved_data["model"] = model;
    return wait(model, token, ticket, inputs, anchor);
  }

  /// A result that the loss does not read gets a gradient of zeros.
  static Tensors backward(AutogradContext *context, Tensors gradients) {
    for (at::Tensor &gradient : gradients)
      gradient = gradient.contiguous();
    Tensors inputs = context->get_saved_variables();
    at::Tensor ticket = inputs.front();
    inputs.erase(inputs.begin());
    at::Tensor ofWeights = update(context->saved_data["model"].toStringRef(),
                                  context->saved_data["token"].toTensor(),
                                  ticket, gradients, inputs);
    Tensors result(3); // of model, token and ticket
    c10::SymInt begin = 0;
    for (const at::Tensor &input : inputs) {
      result.emplace_back();
      if (!isWeights(input))
        continue;
      result.back() = ofWeights.narrow_symint(0, begin, input.sym_numel());
      begin += input.sym_numel();
    }
    result.emplace_back(); // of the anchor
    return result;
  }
};

Tensors waitWithBackward(const std::string &model, const at::Tensor &token,
                         const at::Tensor &ticket, at::TensorList inputs,
                         const OptionalTensor &anchor) {
  return Wait::apply(model, token, ticket, inputs, anchor);
}

} // namespace

TORCH_LIBRARY_IMPL(neuroshard, Autograd, m) {
  m.impl("embeddings_wait", &waitWithBackward);
}
