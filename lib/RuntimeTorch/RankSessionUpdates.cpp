//===- RankSessionUpdates.cpp - Gradients and updates of a session --------===//

#include "RankSession.h"

#include "neuroshard/Artifact/StepNames.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace neuroshard::runtime {
namespace {

constexpr char kOverForBackward[] =
    "it was updated or dropped; a backward runs once for each forward";

/// That of an update's argument.
float commonRate(const std::vector<double> &learningRates) {
  return static_cast<float>(learningRates.front());
}

/// By table, or by nothing if none is frozen.
std::vector<bool> frozenBy(const std::vector<double> &learningRates) {
  std::vector<bool> frozen;
  for (double rate : learningRates)
    frozen.push_back(rate < 0);
  if (std::ranges::find(frozen, true) == frozen.end())
    frozen.clear();
  return frozen;
}

bool areFinite(at::TensorList tensors) {
  return std::ranges::all_of(tensors, [](const at::Tensor &tensor) {
    return at::isfinite(tensor).all().item<bool>();
  });
}

} // namespace

/// Results and their gradients have the same shapes and types.
void RankSession::checkGradients(const Step &step,
                                 at::TensorList gradients) const {
  bool joined = step.waitedBy == kJoinedWaitName;
  TORCH_CHECK_VALUE(gradients.size() == step.resultRows.size(), "expected ",
                    step.resultRows.size(), " gradients, found ",
                    gradients.size());
  const std::vector<ResultSpec> &specs = results.at(step.waitedBy);
  for (size_t i = 0; i < gradients.size(); ++i) {
    auto name = [i] {
      return std::string("gradient of result ").append(std::to_string(i));
    };
    checkKind(gradients[i], specs[i].type, 2, placement.place(), name);
    int64_t dim = joined ? std::accumulate(dims.begin(), dims.end(), int64_t{0})
                         : dims[i];
    TORCH_CHECK_VALUE(gradients[i].size(0) == step.resultRows[i] &&
                          gradients[i].size(1) == dim,
                      name(), ": expected shape [", step.resultRows[i], ", ",
                      dim, "], found ", gradients[i].sizes());
  }
}

/// As functions read a gradient: the values of a row one after the other, the
/// rows apart, or all the same.
at::Tensor RankSession::readable(const at::Tensor &gradient) const {
  bool hasRows = gradient.size(1) <= 1 || gradient.stride(1) == 1;
  bool areApart = gradient.size(0) <= 1 || gradient.stride(0) == 0 ||
                  gradient.stride(0) >= gradient.size(1);
  return hasRows && areApart && !placement.makesCopies()
             ? gradient
             : gradient.contiguous();
}

std::vector<at::Tensor> RankSession::sendGradients(int64_t number,
                                                   at::TensorList gradients,
                                                   UpdateSettings settings) {
  std::lock_guard one(running);
  TORCH_CHECK_VALUE(results.count(kGradientsName),
                    "the artifact has no update; compile it with --training");
  Step step = takeStep(number, kOverForBackward);
  try {
    TORCH_CHECK_VALUE(step.waitedBy, "step ", number,
                      " has no results yet, so it has no gradients");
    TORCH_CHECK_VALUE(!step.sent, "step ", number,
                      " is over: ", kOverForBackward);
    checkGradients(step, gradients);
    TORCH_CHECK_VALUE(
        keptTensors.empty() || step.frozen == keptFrozen, "step ", number,
        " was started with other frozen tables than those of the gradients "
        "that wait; update by these, or drop them, before its backward");
  } catch (...) {
    keepStep(number, std::move(step));
    throw;
  }
  setGradientScale(settings.gradientScale);
  TORCH_CHECK(nsrt_device_keep_gradients(ownDevice, settings.keeps) == 0,
              nsrt_last_error());
  Results returned(results.at(kGradientsName));
  HostCall call(ownDevice, returned);
  call.addResults(step.state);
  std::vector<at::Tensor> placed;
  for (const at::Tensor &gradient : gradients)
    placed.push_back(placement.toFunction(ownDevice, readable(gradient)));
  if (step.waitedBy == kJoinedWaitName) {
    int64_t column = 0;
    for (int64_t dim : dims) {
      call.addColumns(placed.front(), column, dim);
      column += dim;
    }
  } else {
    for (const at::Tensor &gradient : placed)
      call.addTensor(gradient);
  }
  size_t numWeights = 0;
  while (!returned.isHandle(numWeights))
    ++numWeights;
  runOn(step, call, kGradientsName, returned, numWeights);
  std::vector<at::Tensor> ofWeights;
  for (size_t i = 0; i < numWeights; ++i)
    ofWeights.push_back(take(returned, i));
  step.sent = true;
  step.isFinite = !settings.checksFinite || areFinite(gradients);
  step.settings = std::move(settings);
  if (manifest.numDevices == 1) // reads them in place
    step.inputs.insert(step.inputs.end(), placed.begin(), placed.end());
  keepStep(number, std::move(step));
  return ofWeights;
}

void RankSession::update(int64_t number) {
  std::lock_guard one(running);
  Step step = takeStep(number, kOverForBackward);
  if (!step.sent) {
    keepStep(number, std::move(step));
    TORCH_CHECK_VALUE(false, "step ", number, " has sent no gradients");
  }
  runUpdate(step, step.settings.keeps);
}

void RankSession::runUpdate(Step &step, bool keeps) {
  setRates(step.settings.learningRates);
  TORCH_CHECK(nsrt_device_keep_gradients(ownDevice, keeps) == 0,
              nsrt_last_error());
  Results returned(results.at(kUpdateName));
  HostCall call(ownDevice, returned);
  call.addResults(step.state);
  call.addFloat(commonRate(step.settings.learningRates));
  call.addInteger(updates + 1);
  invoke(call, kUpdateName); // releases the handles, also when it fails
  if (keeps) {
    std::ranges::move(step.inputs, std::back_inserter(keptTensors));
    keptFrozen = std::move(step.frozen);
    return;
  }
  keptTensors.clear();
  if (nsrt_device_is_capturing(ownDevice)) // replays count: advance()
    capturedFrozen = frozenBy(step.settings.learningRates);
  else
    ++updates;
}

/// One rate is an argument of the update; those of tables the device has.
void RankSession::setRates(const std::vector<double> &learningRates) {
  std::vector<float> given;
  if (learningRates.size() > 1 || commonRate(learningRates) < 0)
    given.assign(learningRates.begin(), learningRates.end());
  TORCH_CHECK_VALUE(nsrt_device_set_rates(ownDevice, given.data(),
                                          static_cast<int32_t>(given.size())) ==
                        0,
                    nsrt_last_error());
}

void RankSession::freeze(const std::vector<int64_t> &tables) {
  std::lock_guard one(running);
  std::vector<int32_t> numbers(tables.begin(), tables.end());
  TORCH_CHECK_VALUE(nsrt_device_freeze(ownDevice, numbers.data(),
                                       static_cast<int32_t>(numbers.size())) ==
                        0,
                    nsrt_last_error());
  frozen = tables;
}

bool RankSession::keepsGradients() {
  std::lock_guard one(running);
  return !keptTensors.empty();
}

void RankSession::updateKept(const std::vector<double> &learningRates) {
  std::lock_guard one(running);
  if (keptTensors.empty())
    return;
  placement.followStream(ownDevice);
  setRates(learningRates);
  check(nsrt_device_update_kept(ownDevice, commonRate(learningRates),
                                updates + 1));
  keptTensors.clear();
  ++updates;
}

void RankSession::averageCopies() {
  std::lock_guard one(running);
  placement.followStream(ownDevice);
  check(nsrt_device_average_copies(ownDevice));
}

double RankSession::squaredNorm() {
  std::lock_guard one(running);
  placement.followStream(ownDevice);
  std::vector<nsrt_gradient_sums> sums(
      static_cast<size_t>(nsrt_device_num_shards(ownDevice)));
  int32_t count = 0;
  check(nsrt_device_kept_sums(ownDevice, sums.data(), &count));
  sums.resize(static_cast<size_t>(count));
  double total = 0;
  for (const nsrt_gradient_sums &shard : sums) {
    at::Tensor values = placement.toCaller(
        ownDevice, at::from_blob(
                       const_cast<float *>(shard.sums),
                       {shard.rows * shard.stride}, [](void *) {},
                       at::TensorOptions(at::kFloat).device(placement.place()),
                       placement.place()));
    at::Tensor rows = values.view({shard.rows, shard.stride});
    total += rows.narrow(1, 0, shard.width)
                 .to(at::kDouble)
                 .square()
                 .sum()
                 .item<double>();
  }
  return total;
}

void RankSession::scaleKept(double scale) {
  std::lock_guard one(running);
  placement.followStream(ownDevice);
  check(nsrt_device_scale_kept(ownDevice, static_cast<float>(scale)));
}

void RankSession::dropGradients(std::optional<int64_t> number) {
  std::lock_guard one(running);
  if (number) {
    Step step = takeStep(*number, kOverForBackward);
    runUpdate(step, /*keeps=*/true);
  }
  TORCH_CHECK(nsrt_device_drop_kept(ownDevice) == 0, nsrt_last_error());
  keptTensors.clear();
}

std::optional<bool> RankSession::hasFiniteGradients(int64_t number) {
  std::lock_guard lock(mutex);
  auto found = steps.find(number);
  if (found == steps.end() || !found->second.settings.checksFinite)
    return std::nullopt;
  return found->second.isFinite;
}

void RankSession::advance(const std::vector<double> &learningRates) {
  std::lock_guard one(running);
  placement.followStream(ownDevice);
  TORCH_CHECK_VALUE(!capturedFrozen ||
                        *capturedFrozen == frozenBy(learningRates),
                    "tables were frozen or unfrozen since the update was "
                    "captured in a CUDA graph; capture it again");
  setRates(learningRates);
  TORCH_CHECK_VALUE(nsrt_device_set_step(ownDevice, commonRate(learningRates),
                                         updates + 1) == 0,
                    nsrt_last_error());
  ++updates;
}

void RankSession::setGradientScale(double scale) {
  TORCH_CHECK_VALUE(
      nsrt_device_set_gradient_scale(ownDevice, static_cast<float>(scale)) == 0,
      nsrt_last_error());
}

} // namespace neuroshard::runtime
