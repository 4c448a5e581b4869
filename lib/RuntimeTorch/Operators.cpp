//===- Operators.cpp - torch.ops.neuroshard: steps over a process group ---===//
//
// The operators in a traced program, and those with which Python opens and
// configures a model. Operators take values only, so a model is passed by name.
// Operators of a step change nothing that tracers know of. Each takes what the
// one before it returns, so that tracers keep them in order (Autograd.cpp).
// Python registers shapes for tracing, and the operators gradient_settings and
// are_finite_everywhere.
//
//===----------------------------------------------------------------------===//

#include "FindOperator.h"
#include "Sessions.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <utility>

using namespace neuroshard::runtime;

namespace {

/// A tensor that holds a step's number, and what `atEnd` captures until the
/// tensor's memory is freed. Then it calls `atEnd`.
template <typename AtEnd> at::Tensor holdStep(int64_t step, AtEnd atEnd) {
  auto *number = new int64_t(step);
  return at::from_blob(
      number, {1},
      [number, atEnd = std::move(atEnd)](void *) {
        atEnd();
        delete number;
      },
      at::kLong);
}

/// The step is dropped when no tensor holds it any more.
at::Tensor makeTicket(const std::shared_ptr<RankSession> &session,
                      int64_t step) {
  return holdStep(step, [step, weak = std::weak_ptr<RankSession>(session)] {
    if (auto session = weak.lock())
      session->release(step);
  });
}

int64_t stepOf(const at::Tensor &ticket) {
  return *ticket.const_data_ptr<int64_t>();
}

/// The second argument is another tensor for each call, so that tracers do not
/// make one of two with the same inputs.
at::Tensor embeddingsStart(const std::string &model, const at::Tensor &,
                           const std::vector<at::Tensor> &inputs) {
  auto session = findSession(model);
  std::vector<at::Tensor> values;
  for (const at::Tensor &input : inputs)
    values.push_back(input.requires_grad() ? input.detach() : input);
  return makeTicket(session, session->start(values));
}

/// The new ticket keeps the old one.
at::Tensor embeddingsLookup(const std::string &model,
                            const at::Tensor &ticket) {
  int64_t step = stepOf(ticket);
  findSession(model)->lookUp(step);
  return holdStep(step, [ticket] {});
}

/// Tracers take the shapes of the results from the inputs, those that
/// embeddings_start got.
std::vector<at::Tensor> embeddingsWait(const std::string &model,
                                       const at::Tensor &ticket, at::TensorList,
                                       const std::optional<at::Tensor> &, bool,
                                       bool joined) {
  return findSession(model)->wait(stepOf(ticket), joined);
}

/// What Python holds: the scale of gradients, whether they are kept, whether
/// they are checked, then learning rates.
std::vector<double> gradientSettings(const std::string &model) {
  static auto operation =
      findOperator<decltype(gradientSettings)>("neuroshard::gradient_settings");
  return operation.call(model);
}

UpdateSettings settingsOf(const std::string &model) {
  std::vector<double> given = gradientSettings(model);
  TORCH_CHECK(given.size() > 3, "neuroshard::gradient_settings: expected a "
                                "scale, two flags and learning rates");
  return {
      {given.begin() + 3, given.end()}, given[0], given[1] != 0, given[2] != 0};
}

/// Whether gradients are finite on all ranks, which Python asks them.
bool areFiniteEverywhere(const std::string &model, bool finite) {
  static auto operation = findOperator<decltype(areFiniteEverywhere)>(
      "neuroshard::are_finite_everywhere");
  return operation.call(model, finite);
}

/// The gradient of an anchor on a device.
at::Tensor ofAnchor(c10::Device place) {
  return at::zeros({}, at::TensorOptions(at::kFloat).device(place));
}

/// The gradients of all weights in one tensor, and that of the anchor.
std::tuple<at::Tensor, at::Tensor> embeddingsGradients(const std::string &model,
                                                       const at::Tensor &ticket,
                                                       at::TensorList gradients,
                                                       at::TensorList) {
  // Before anything is sent, since it may throw.
  UpdateSettings settings = settingsOf(model);
  std::vector<at::Tensor> ofWeights = findSession(model)->sendGradients(
      stepOf(ticket), gradients, std::move(settings));
  at::Tensor done = ofAnchor(gradients.front().device());
  if (ofWeights.empty())
    return {at::empty({0}, gradients.front().options().dtype(at::kFloat)),
            done};
  return {ofWeights.size() == 1 ? ofWeights.front() : at::cat(ofWeights), done};
}

/// `kept`: the gradients and inputs that a single device reads in place, so
/// that tracers do not give their memory to others before, and what comes
/// before the update. Gives the gradient of the module's anchor.
at::Tensor embeddingsUpdate(const std::string &model, const at::Tensor &ticket,
                            at::TensorList) {
  auto session = findSession(model);
  int64_t step = stepOf(ticket);
  std::optional<bool> finite = session->hasFiniteGradients(step);
  if (!finite || areFiniteEverywhere(model, *finite))
    session->update(step);
  else
    session->dropGradients(step);
  return ofAnchor(at::kCPU);
}

/// What stands for the update of a step in autograd, on the device of its
/// inputs (Autograd.cpp).
at::Tensor embeddingsAnchor(const std::string &, const at::Tensor &,
                            at::TensorList inputs, const at::Tensor &) {
  return ofAnchor(inputs.front().device());
}

void join(const std::string &model, const std::string &directory,
          const std::vector<std::string> &groups, const std::string &device,
          int64_t threads, bool checksLate, const std::string &tierDirectory) {
  addSession(model,
             std::make_shared<RankSession>(
                 directory, groups, device, threads,
                 checksLate ? IdCheck::Late : IdCheck::Early, tierDirectory));
}

std::vector<at::Tensor> shardTensors(const std::string &model, int64_t shard) {
  return findSession(model)->shard(static_cast<int32_t>(shard));
}

/// The numbers of nsrt_cache_figures, in order.
std::vector<int64_t> cacheFigures(const std::string &model, int64_t shard) {
  nsrt_cache_figures figures;
  TORCH_CHECK(nsrt_device_cache(findSession(model)->device(),
                                static_cast<int32_t>(shard), &figures) == 0,
              nsrt_last_error());
  return {figures.places,
          figures.batches,
          figures.rows,
          figures.hits,
          figures.written,
          figures.most_spilled,
          figures.wait_nanoseconds};
}

/// The fields of nsrt_disk_rates, in order.
std::vector<double> measureDisk(const std::string &directory, int64_t bytes) {
  nsrt_disk_rates rates;
  TORCH_CHECK_VALUE(nsrt_measure_disk(directory.c_str(), bytes, &rates) == 0,
                    nsrt_last_error());
  return {rates.transfers_per_second, rates.bytes_per_second};
}

/// What `valueOf` gives for each number below `count`.
template <typename Value, typename Function>
std::vector<Value> listOf(int32_t count, const Function &valueOf) {
  std::vector<Value> values;
  for (int32_t i = 0; i < count; ++i)
    values.push_back(valueOf(i));
  return values;
}

using Names = std::vector<std::string>;

Names phaseNames() {
  return listOf<std::string>(nsrt_num_phases(), nsrt_phase_name);
}

Names phaseTerms() {
  return listOf<std::string>(nsrt_num_phases(), nsrt_phase_term);
}

Names bufferNames() {
  return listOf<std::string>(nsrt_num_buffer_kinds(), nsrt_buffer_kind_name);
}

std::vector<double> phaseMs(const std::string &model) {
  auto session = findSession(model);
  return listOf<double>(nsrt_num_phases(), [&](int32_t phase) {
    return nsrt_device_phase_ms(session->device(), phase);
  });
}

std::vector<int64_t> phaseBytes(const std::string &model) {
  auto session = findSession(model);
  return listOf<int64_t>(nsrt_num_phases(), [&](int32_t phase) {
    return nsrt_device_phase_bytes(session->device(), phase);
  });
}

std::vector<int64_t> bufferBytes(const std::string &model) {
  auto session = findSession(model);
  return listOf<int64_t>(nsrt_num_buffer_kinds(), [&](int32_t kind) {
    return nsrt_device_buffer_bytes(session->device(), kind);
  });
}

} // namespace

TORCH_LIBRARY_FRAGMENT(neuroshard, m) {
  m.def("embeddings_start(str model, Tensor call, Tensor[] inputs) -> Tensor");
  m.def("embeddings_lookup(str model, Tensor ticket) -> Tensor");
  m.def("embeddings_anchor(str model, Tensor ticket, Tensor[] inputs, "
        "Tensor anchor) -> Tensor");
  m.def("embeddings_wait(str model, Tensor ticket, Tensor[] inputs, "
        "Tensor? anchor, bool updates=True, bool joined=False) -> Tensor[]");
  m.def("embeddings_gradients(str model, Tensor ticket, Tensor[] gradients, "
        "Tensor[] inputs) -> (Tensor, Tensor)");
  m.def("embeddings_update(str model, Tensor ticket, Tensor[] kept) -> Tensor");
  m.def("gradient_settings(str model) -> float[]");
  m.def("are_finite_everywhere(str model, bool finite) -> bool");
  m.def("join(str model, str directory, str[] groups, str device, int threads, "
        "bool checks_late, str tier_directory) -> ()",
        &join);
  m.def("advance(str model, float[] learning_rates) -> ()",
        [](const std::string &model, const std::vector<double> &rates) {
          findSession(model)->advance(rates);
        });
  m.def("update_kept(str model, float[] learning_rates) -> ()",
        [](const std::string &model, const std::vector<double> &rates) {
          findSession(model)->updateKept(rates);
        });
  m.def("average_copies(str model) -> ()",
        [](const std::string &model) { findSession(model)->averageCopies(); });
  m.def("squared_norm(str model) -> float", [](const std::string &model) {
    return findSession(model)->squaredNorm();
  });
  m.def("scale_kept(str model, float scale) -> ()",
        [](const std::string &model, double scale) {
          findSession(model)->scaleKept(scale);
        });
  m.def("freeze(str model, int[] tables) -> ()",
        [](const std::string &model, const std::vector<int64_t> &tables) {
          findSession(model)->freeze(tables);
        });
  m.def("drop_kept(str model) -> ()", [](const std::string &model) {
    findSession(model)->dropGradients(std::nullopt);
  });
  m.def("leave(str model) -> ()", &closeSession);
  m.def("rename(str model, str name) -> ()", &renameSession);
  m.def("require_idle(str model) -> ()",
        [](const std::string &model) { findSession(model)->requireIdle(); });
  m.def("initialize(str model, int seed) -> ()",
        [](const std::string &model, int64_t seed) {
          findSession(model)->initialize(seed);
        });
  m.def("assign_rows(str model, int table, Tensor rows, Tensor ids, int seed) "
        "-> ()",
        [](const std::string &model, int64_t table, const at::Tensor &rows,
           const at::Tensor &ids, int64_t seed) {
          findSession(model)->assignRows(table, rows, ids, seed);
        });
  m.def("open_steps(str model) -> int[]", [](const std::string &model) {
    return findSession(model)->openSteps();
  });
  m.def("keeps_gradients(str model) -> bool", [](const std::string &model) {
    return findSession(model)->keepsGradients();
  });
  m.def("refuse(str model, str text) -> ()",
        [](const std::string &model, const std::string &text) {
          findSession(model)->refuse(text);
        });
  m.def("note_purpose(str model, int purpose) -> ()",
        [](const std::string &model, int64_t purpose) {
          findSession(model)->notePurpose(purpose);
        });
  m.def("num_updates(str model) -> int", [](const std::string &model) {
    return findSession(model)->numUpdates();
  });
  m.def("set_num_updates(str model, int count) -> ()",
        [](const std::string &model, int64_t count) {
          findSession(model)->setNumUpdates(count);
        });
  m.def("settle(str model) -> ()",
        [](const std::string &model) { findSession(model)->settle(); });
  m.def("shard_tensors(str model, int shard) -> Tensor[]", &shardTensors);
  m.def("cache_figures(str model, int shard) -> int[]", &cacheFigures);
  m.def("measure_disk(str directory, int bytes) -> float[]", &measureDisk);
  m.def("phase_names() -> str[]", &phaseNames);
  m.def("phase_terms() -> str[]", &phaseTerms);
  m.def("phase_ms(str model) -> float[]", &phaseMs);
  m.def("phase_bytes(str model) -> int[]", &phaseBytes);
  m.def("reset_phases(str model) -> ()", [](const std::string &model) {
    nsrt_device_reset_phases(findSession(model)->device());
  });
  m.def("buffer_names() -> str[]", &bufferNames);
  m.def("buffer_bytes(str model) -> int[]", &bufferBytes);
  m.def("memory_bytes(str model, int kind) -> int",
        [](const std::string &model, int64_t kind) {
          return nsrt_device_memory_bytes(findSession(model)->device(),
                                          static_cast<int32_t>(kind));
        });
}

static void implement(torch::Library &m) {
  m.impl("embeddings_start", &embeddingsStart);
  m.impl("embeddings_lookup", &embeddingsLookup);
  m.impl("embeddings_anchor", &embeddingsAnchor);
  m.impl("embeddings_wait", &embeddingsWait);
  m.impl("embeddings_gradients", &embeddingsGradients);
  m.impl("embeddings_update", &embeddingsUpdate);
}

TORCH_LIBRARY_IMPL(neuroshard, CPU, m) { implement(m); }
TORCH_LIBRARY_IMPL(neuroshard, CUDA, m) { implement(m); }
