//===- Autograd.cpp - The backward of a lookup ----------------------------===//
//
// The backward of a lookup is the update of its tables, in two nodes. That of
// embeddings_wait sends the gradients. That of embeddings_anchor, which is
// called before dense operations between start and wait, waits for gradients
// and updates: autograd runs later nodes first, so gradients travel during the
// backward of those operations. Without an anchor of its own, wait does both.
//
// `anchor` requires a gradient, which is zero: with it autograd calls the
// backward of lookups without another input to differentiate. That zero is what
// the operators of the backward return, and the update takes that of the
// gradients: so tracers neither drop the operators, nor change their order, nor
// take one for a part of the forward.
//
//===----------------------------------------------------------------------===//

#include "FindOperator.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

using Tensors = std::vector<at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;
using neuroshard::runtime::findOperator;
using torch::autograd::AutogradContext;

at::Tensor anchorOf(const std::string &model, const at::Tensor &ticket,
                    at::TensorList inputs, const at::Tensor &anchor) {
  static auto operation =
      findOperator<decltype(anchorOf)>("neuroshard::embeddings_anchor");
  at::AutoDispatchBelowADInplaceOrView guard;
  return operation.call(model, ticket, inputs, anchor);
}

Tensors wait(const std::string &model, const at::Tensor &ticket,
             at::TensorList inputs, const OptionalTensor &anchor, bool updates,
             bool joined) {
  static auto operation =
      findOperator<decltype(wait)>("neuroshard::embeddings_wait");
  at::AutoDispatchBelowADInplaceOrView guard;
  return operation.call(model, ticket, inputs, anchor, updates, joined);
}

std::tuple<at::Tensor, at::Tensor> sendGradients(const std::string &model,
                                                 const at::Tensor &ticket,
                                                 at::TensorList gradients,
                                                 at::TensorList inputs) {
  static auto operation =
      findOperator<decltype(sendGradients)>("neuroshard::embeddings_gradients");
  return operation.call(model, ticket, gradients, inputs);
}

at::Tensor update(const std::string &model, const at::Tensor &ticket,
                  at::TensorList kept) {
  static auto operation =
      findOperator<decltype(update)>("neuroshard::embeddings_update");
  return operation.call(model, ticket, kept);
}

/// Weights are the inputs of their type: ids and offsets are integers.
bool isWeights(const at::Tensor &input) { return input.is_floating_point(); }

/// What the backward of a step's operators needs.
void saveStep(AutogradContext *context, const std::string &model,
              Tensors tensors) {
  context->save_for_backward(std::move(tensors));
  context->saved_data["model"] = model;
}

struct Anchor : torch::autograd::Function<Anchor> {
  static at::Tensor forward(AutogradContext *context, const std::string &model,
                            const at::Tensor &ticket, at::TensorList inputs,
                            const at::Tensor &anchor) {
    saveStep(context, model, {ticket});
    context->saved_data["inputs"] = static_cast<int64_t>(inputs.size());
    return anchorOf(model, ticket, inputs, anchor);
  }

  static Tensors backward(AutogradContext *context, const Tensors &gradients) {
    // Of model, ticket and inputs.
    Tensors result(2 +
                   static_cast<size_t>(context->saved_data["inputs"].toInt()));
    result.push_back(update(context->saved_data["model"].toStringRef(),
                            context->get_saved_variables().front(), gradients));
    return result;
  }
};

struct Wait : torch::autograd::Function<Wait> {
  static Tensors forward(AutogradContext *context, const std::string &model,
                         const at::Tensor &ticket, at::TensorList inputs,
                         const OptionalTensor &anchor, bool updates,
                         bool joined) {
    Tensors saved = {ticket};
    saved.insert(saved.end(), inputs.begin(), inputs.end());
    saveStep(context, model, std::move(saved));
    context->saved_data["updates"] = updates;
    return wait(model, ticket, inputs, anchor, updates, joined);
  }

  /// A result that the loss does not read gets a gradient of zeros.
  static Tensors backward(AutogradContext *context, const Tensors &gradients) {
    Tensors saved = context->get_saved_variables();
    at::Tensor ticket = saved[0];
    Tensors inputs(saved.begin() + 1, saved.end());
    const std::string &model = context->saved_data["model"].toStringRef();
    auto [ofWeights, ofAnchor] =
        sendGradients(model, ticket, gradients, inputs);
    if (context->saved_data["updates"].toBool()) {
      Tensors kept = gradients;
      kept.insert(kept.end(), inputs.begin(), inputs.end());
      kept.push_back(ofAnchor);
      ofAnchor = update(model, ticket, kept);
    }
    Tensors result(2); // of model and ticket
    c10::SymInt begin = 0;
    for (const at::Tensor &input : inputs) {
      result.emplace_back();
      if (!isWeights(input))
        continue;
      result.back() = ofWeights.narrow_symint(0, begin, input.sym_numel());
      begin += input.sym_numel();
    }
    result.push_back(ofAnchor);
    result.resize(result.size() + 2); // of updates and joined
    return result;
  }
};

at::Tensor anchorWithBackward(const std::string &model,
                              const at::Tensor &ticket, at::TensorList inputs,
                              const at::Tensor &anchor) {
  return Anchor::apply(model, ticket, inputs, anchor);
}

Tensors waitWithBackward(const std::string &model, const at::Tensor &ticket,
                         at::TensorList inputs, const OptionalTensor &anchor,
                         bool updates, bool joined) {
  if (!anchor) // nothing learns, whatever weights require
    return wait(model, ticket, inputs, anchor, updates, joined);
  return Wait::apply(model, ticket, inputs, anchor, updates, joined);
}

} // namespace

TORCH_LIBRARY_IMPL(neuroshard, Autograd, m) {
  m.impl("embeddings_anchor", &anchorWithBackward);
  m.impl("embeddings_wait", &waitWithBackward);
  // Without torch's own kernel, which boxes all arguments.
  for (const char *name : {"embeddings_start", "embeddings_lookup",
                           "embeddings_gradients", "embeddings_update"})
    m.impl(name, torch::CppFunction::makeFallthrough());
}
