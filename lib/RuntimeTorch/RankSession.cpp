//===- RankSession.cpp - Runs one rank of a compiled model ----------------===//
//
// Errors are those of torch: ValueError for wrong arguments and ids,
// DistBackendError when the group has ended.
//
//===----------------------------------------------------------------------===//

#include "RankSession.h"

#include "ProcessGroupCommunicator.h"
#include "WatchedGroup.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/StepNames.h"
#include "neuroshard/Runtime/Join.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

namespace neuroshard::runtime {
namespace {

Manifest readManifest(const std::string &directory) {
  try {
    return openManifest(directory);
  } catch (const RuntimeError &error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

at::ScalarType scalarType(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return at::kFloat;
  case ElementType::F16:
    return at::kHalf;
  case ElementType::BF16:
    return at::kBFloat16;
  }
  return at::kFloat;
}

void checkDense(const at::Tensor &tensor, at::ScalarType type, int64_t dims,
                const std::string &what) {
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), what,
                    ": expected a tensor on the CPU, found one on ",
                    tensor.device());
  TORCH_CHECK_VALUE(tensor.scalar_type() == type, what, ": expected ", type,
                    ", found ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.dim() == dims, what, ": expected ", dims,
                    " dimensions, found shape ", tensor.sizes());
  TORCH_CHECK_VALUE(tensor.is_contiguous(), what,
                    ": expected a contiguous tensor");
}

using World = std::unique_ptr<nsrt_world, void (*)(nsrt_world *)>;

World openWorld(const std::string &directory, const std::string &groupName,
                int64_t threads) {
  auto count = static_cast<int32_t>(std::clamp<int64_t>(threads, -1, 1 << 20));
  nsrt_world *world = nullptr;
  if (groupName.empty())
    world = nsrt_world_open(directory.c_str(), count);
  else
    world = nsrt_world_join(directory.c_str(), count,
                            std::make_unique<ProcessGroupCommunicator>(
                                groupName, findWatch(groupName))
                                .release());
  TORCH_CHECK_VALUE(world, nsrt_last_error());
  return {world, nsrt_world_close};
}

} // namespace

RankSession::RankSession(const std::string &directory,
                         const std::string &groupName, int64_t threads)
    : world(nullptr, nsrt_world_close) {
  manifest = readManifest(directory);
  results = resultsOf(manifest);
  TORCH_CHECK_VALUE(manifest.exchanges.size() == 1, "the artifact in ",
                    directory, " has ", manifest.exchanges.size(),
                    " inputs of ids; expected one");
  for (const char *name : {kStartName, kLookupName, kWaitName})
    TORCH_CHECK_VALUE(results.count(name), "the artifact in ", directory,
                      " has no function ", name, "; compile it again");
  TORCH_CHECK_VALUE(!groupName.empty() || manifest.numDevices == 1,
                    "the artifact in ", directory, " is for ",
                    manifest.numDevices,
                    " devices; expected a process group of as many ranks");
  world = openWorld(directory, groupName, threads);
  for (int32_t rank = 0; rank < manifest.numDevices && !ownDevice; ++rank)
    ownDevice = nsrt_world_device(world.get(), rank);
}

RankSession::~RankSession() {
  std::lock_guard lock(mutex);
  for (auto &[number, step] : steps)
    releaseHandles(step);
}

/// The first handle is that of the ids, a second one that of partial results.
void RankSession::releaseHandles(Step &step) noexcept {
  size_t handles = 0;
  for (size_t i = 0; i < step.state.size(); ++i) {
    if (!step.state.isHandle(i))
      continue;
    void *handle = step.state.handle(i);
    if (handles++ == 0)
      nsrt_routed_release(ownDevice, static_cast<nsrt_routed *>(handle));
    else
      nsrt_partials_release(ownDevice, static_cast<nsrt_partials *>(handle));
  }
}

void RankSession::invoke(HostCall &call, const char *function) {
  if (call.invoke(function) == 0)
    return;
  std::string error = nsrt_last_error();
  TORCH_CHECK_WITH(DistBackendError, !nsrt_device_group_ended(ownDevice),
                   error);
  TORCH_CHECK_VALUE(false, error);
}

void RankSession::checkInput(const Ids &input) const {
  checkDense(input.ids, exchange().idType == IdType::I64 ? at::kLong : at::kInt,
             1, "ids");
  checkDense(input.offsets, at::kLong, 1, "offsets");
  auto features = static_cast<int64_t>(exchange().features.size());
  TORCH_CHECK_VALUE(input.offsets.numel() % features == 1 || features == 1,
                    "offsets: expected features * batch + 1 = ", features,
                    " * batch + 1 values, found ", input.offsets.numel());
  TORCH_CHECK_VALUE(input.offsets.numel() > 0,
                    "offsets: expected at least one value, found none");
  TORCH_CHECK_VALUE(input.weights.has_value() == exchange().weighted,
                    "weights: expected ",
                    exchange().weighted ? "one for each id, found none"
                                        : "none, since no lookup is weighted");
  if (!input.weights)
    return;
  checkDense(*input.weights, at::kFloat, 1, "weights");
  TORCH_CHECK_VALUE(input.weights->numel() == input.ids.numel(),
                    "weights: expected one for each of the ", input.ids.numel(),
                    " ids, found ", input.weights->numel());
}

int64_t RankSession::start(const Ids &input) {
  try {
    checkInput(input);
  } catch (const c10::Error &error) {
    refuse(error.what_without_backtrace());
    throw;
  }
  return startChecked(input);
}

void RankSession::refuse(const std::string &text) {
  if (manifest.numDevices == 1)
    return;
  TORCH_CHECK(nsrt_device_refuse(ownDevice, text.c_str()) == 0,
              nsrt_last_error());
  auto idType = exchange().idType == IdType::I64 ? at::kLong : at::kInt;
  Ids none{at::empty({0}, idType), at::zeros({1}, at::kLong), std::nullopt};
  if (exchange().weighted)
    none.weights = at::empty({0});
  try {
    startChecked(none);
  } catch (const c10::ValueError &) {
    // Intended: the other ranks have the text, the caller has its own error.
  }
}

int64_t RankSession::startChecked(const Ids &input) {
  Step step;
  step.input = input;
  step.state = Results(results.at(kStartName));
  HostCall call(ownDevice, step.state);
  call.addTensor(input.ids);
  call.addTensor(input.offsets);
  if (input.weights)
    call.addTensor(*input.weights);
  try {
    invoke(call, kStartName);
  } catch (...) {
    releaseHandles(step);
    throw;
  }
  int64_t number = nextStep++;
  keepStep(number, std::move(step));
  return number;
}

void RankSession::keepStep(int64_t number, Step step) {
  std::lock_guard lock(mutex);
  steps.emplace(number, std::move(step));
}

std::optional<RankSession::Step> RankSession::takeOwed(int64_t end) {
  std::lock_guard lock(mutex);
  for (auto it = steps.begin(); it != steps.end() && it->first < end; ++it)
    if (!it->second.lookedUp) {
      owed = it->first;
      droppedOwed = false;
      Step step = std::move(it->second);
      steps.erase(it);
      return step;
    }
  return std::nullopt;
}

/// Results travel in the order of the starts on all ranks, whatever order a
/// rank asks for them in, and also if it never does.
void RankSession::lookUpEarlier(int64_t end) {
  while (std::optional<Step> step = takeOwed(end)) {
    lookUp(*step);
    std::lock_guard lock(mutex);
    int64_t number = std::exchange(owed, -1);
    if (std::exchange(droppedOwed, false) || step->dropped)
      releaseHandles(*step);
    else
      steps.emplace(number, std::move(*step));
  }
}

RankSession::Step RankSession::takeStep(int64_t number, const char *wanted) {
  std::lock_guard lock(mutex);
  auto found = steps.find(number);
  TORCH_CHECK_VALUE(found != steps.end(), "step ", number,
                    " is over: ", wanted);
  Step step = std::move(found->second);
  steps.erase(found);
  return step;
}

void RankSession::lookUp(int64_t number) {
  lookUpEarlier(number);
  Step step = takeStep(number, "its rows are looked up before its results are "
                               "asked for");
  lookUp(step);
  keepStep(number, std::move(step));
}

void RankSession::lookUp(Step &step) {
  if (step.lookedUp)
    return;
  Results returned(results.at(kLookupName));
  HostCall call(ownDevice, returned);
  call.addResults(step.state);
  try {
    invoke(call, kLookupName);
  } catch (...) {
    if (returned.areWritten())
      step.state = std::move(returned);
    releaseHandles(step);
    throw;
  }
  step.state = std::move(returned);
  step.lookedUp = true;
}

std::vector<at::Tensor> RankSession::wait(int64_t number) {
  lookUpEarlier(number);
  Step step = takeStep(number, "its results can be asked for once");
  lookUp(step);
  Results returned(results.at(kWaitName));
  HostCall call(ownDevice, returned);
  call.addResults(step.state);
  size_t lookups = exchange().lookups.size();
  try {
    invoke(call, kWaitName);
  } catch (...) {
    // The function has released what it does not return.
    if (returned.areWritten())
      step.state = returned.splitFrom(lookups);
    releaseHandles(step);
    throw;
  }
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < lookups; ++i) {
    tensors.push_back(returned.take(i));
    step.resultRows.push_back(tensors.back().size(0));
  }
  step.state = returned.splitFrom(lookups);
  step.waited = true;
  keepStep(number, std::move(step));
  return tensors;
}

void RankSession::checkGradients(
    const Step &step, const std::vector<at::Tensor> &gradients) const {
  const auto &lookups = exchange().lookups;
  TORCH_CHECK_VALUE(gradients.size() == lookups.size(), "expected ",
                    lookups.size(), " gradients, found ", gradients.size());
  for (size_t i = 0; i < lookups.size(); ++i) {
    std::string what =
        std::string("gradient of result ").append(std::to_string(i));
    checkDense(gradients[i], scalarType(lookups[i].resultType), 2, what);
    int64_t dim = manifest.tables[static_cast<size_t>(lookups[i].table)].dim;
    TORCH_CHECK_VALUE(gradients[i].size(0) == step.resultRows[i] &&
                          gradients[i].size(1) == dim,
                      what, ": expected shape [", step.resultRows[i], ", ", dim,
                      "], found ", gradients[i].sizes());
  }
}

std::optional<at::Tensor>
RankSession::update(int64_t number, const std::vector<at::Tensor> &gradients,
                    double learningRate) {
  TORCH_CHECK_VALUE(results.count(kUpdateName),
                    "the artifact has no update; compile it with --training");
  Step step = takeStep(number, "it was updated or dropped; a backward runs "
                               "once for each forward");
  try {
    TORCH_CHECK_VALUE(step.waited, "step ", number,
                      " has no results yet, so it has no gradients");
    checkGradients(step, gradients);
  } catch (...) {
    keepStep(number, std::move(step));
    throw;
  }
  Results returned(results.at(kUpdateName));
  HostCall call(ownDevice, returned);
  call.addResults(step.state);
  for (const at::Tensor &gradient : gradients)
    call.addTensor(gradient);
  call.addFloat(static_cast<float>(learningRate));
  call.addInteger(updates + 1);
  invoke(call, kUpdateName); // releases the handles, also when it fails
  ++updates;
  if (returned.size() == 0)
    return std::nullopt;
  return returned.take(0);
}

void RankSession::release(int64_t number) noexcept {
  std::lock_guard lock(mutex);
  auto found = steps.find(number);
  if (found == steps.end()) {
    droppedOwed |= number == owed;
    return;
  }
  Step &step = found->second;
  step.dropped = true;
  if (manifest.numDevices > 1 && !step.lookedUp)
    return; // other ranks may wait for its results
  releaseHandles(step);
  steps.erase(found);
}

void RankSession::initialize(int64_t seed) {
  TORCH_CHECK(
      nsrt_table_initialize(world.get(), -1, static_cast<uint64_t>(seed)) == 0,
      nsrt_last_error());
}

void RankSession::setGradientScale(double scale) {
  TORCH_CHECK_VALUE(
      nsrt_device_set_gradient_scale(ownDevice, static_cast<float>(scale)) == 0,
      nsrt_last_error());
}

std::vector<std::vector<at::Tensor>> RankSession::shards() const {
  std::vector<std::vector<at::Tensor>> shards;
  for (int32_t i = 0; i < nsrt_device_num_shards(ownDevice); ++i) {
    nsrt_shard_info info;
    TORCH_CHECK(nsrt_device_shard(ownDevice, i, &info) == 0, nsrt_last_error());
    int64_t rows = info.row_end - info.row_begin;
    int64_t cols = info.col_end - info.col_begin;
    ElementType type =
        manifest.tables[static_cast<size_t>(info.table)].elementType;
    std::vector<at::Tensor> &shard = shards.emplace_back();
    shard.push_back(at::from_blob(info.weights, {rows, cols},
                                  {info.weight_stride, 1}, scalarType(type)));
    for (int32_t s = 0; s < info.num_states; ++s)
      shard.push_back(info.has_row_state
                          ? at::from_blob(info.states[s], {rows},
                                          {info.state_stride}, at::kFloat)
                          : at::from_blob(info.states[s], {rows, cols},
                                          {info.state_stride, 1}, at::kFloat));
  }
  return shards;
}

namespace {
struct Sessions {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<RankSession>> byName;
};

/// Never destroyed: sessions that are still open at the end of the process must
/// not be torn down after torch is.
Sessions &sessions() {
  static auto *all = new Sessions;
  return *all;
}
} // namespace

std::shared_ptr<RankSession> findSession(const std::string &name) {
  std::lock_guard lock(sessions().mutex);
  auto found = sessions().byName.find(name);
  TORCH_CHECK_VALUE(found != sessions().byName.end(),
                    "there is no open model named \"", name,
                    "\"; it was closed or never opened");
  return found->second;
}

void addSession(const std::string &name, std::shared_ptr<RankSession> session) {
  std::lock_guard lock(sessions().mutex);
  bool added = sessions().byName.emplace(name, std::move(session)).second;
  TORCH_CHECK_VALUE(added, "a model named \"", name, "\" is open already");
}

void closeSession(const std::string &name) {
  std::shared_ptr<RankSession> last; // closed after the lock is free
  std::lock_guard lock(sessions().mutex);
  auto found = sessions().byName.find(name);
  if (found == sessions().byName.end())
    return;
  last = std::move(found->second);
  sessions().byName.erase(found);
}

} // namespace neuroshard::runtime
