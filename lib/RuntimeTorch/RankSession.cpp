//===- RankSession.cpp - Runs one rank of a compiled model ----------------===//
//
// Errors are those of torch: ValueError for wrong arguments and ids,
// DistBackendError when the group has ended.
//
//===----------------------------------------------------------------------===//

#include "RankSession.h"

#include "Group/ProcessGroupCommunicator.h"
#include "Group/WatchedGroup.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/StepNames.h"
#include "neuroshard/Runtime/Open.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace neuroshard::runtime {
namespace {

/// So that what holds a step of one session names none of a later one.
std::atomic<int64_t> nextStepOfProcess = 0;

Manifest readManifest(const std::string &directory) {
  try {
    return openManifest(directory);
  } catch (const RuntimeError &error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

const FunctionSpec &findStep(const Manifest &manifest, const char *name,
                             const std::string &directory) {
  for (const FunctionSpec &function : manifest.functions)
    if (function.name == name)
      return function;
  TORCH_CHECK_VALUE(false, "the artifact in ", directory, " has no function ",
                    name, "; compile it again");
}

/// The exchanges of the inputs that start takes, in their order.
std::vector<const ExchangeSpec *> inputsOf(const Manifest &manifest,
                                           const std::string &directory) {
  std::vector<const ExchangeSpec *> exchanges;
  for (const ValueSpec &value :
       findStep(manifest, kStartName, directory).arguments)
    if (value.exchange)
      exchanges.push_back(
          &manifest.exchanges[static_cast<size_t>(*value.exchange)]);
  return exchanges;
}

/// Throws a ValueError if a part of a step is missing, or cannot run there.
void checkSteps(const Manifest &manifest, const Placement &placement,
                const std::string &directory) {
  for (const char *name : {kStartName, kLookupName, kWaitName})
    findStep(manifest, name, directory);
  for (const FunctionSpec &function : manifest.functions)
    if (function.name == kUpdateName)
      findStep(manifest, kGradientsName, directory);
  for (const FunctionSpec &function : manifest.functions)
    for (const char *name : kStepNames)
      TORCH_CHECK_VALUE(
          placement.isHost() || !function.touchesTensors ||
              function.name != name,
          "function ", name, " of the artifact in ", directory,
          " computes on tensors itself, which works on device \"cpu\" alone");
}

/// The columns of each tensor of rows that wait returns.
std::vector<int64_t> dimsOf(const FunctionSpec &wait) {
  std::vector<int64_t> dims;
  for (const ValueSpec &result : wait.results)
    if (result.kind == ValueKind::Tensor && result.shape.size() == 2)
      dims.push_back(result.shape[1]);
  return dims;
}

using World = std::unique_ptr<nsrt_world, void (*)(nsrt_world *)>;

World openWorld(const std::string &directory,
                const std::vector<std::string> &groups,
                const Placement &placement, int64_t threads, IdCheck check,
                const std::string &tierDirectory) {
  auto count = static_cast<int32_t>(std::clamp<int64_t>(threads, -1, 1 << 20));
  std::unique_ptr<BackendFactory> backends =
      placement.makeBackends(directory, check);
  nsrt_world *world = nullptr;
  if (groups.empty())
    world = nsrt_world_open_on(directory.c_str(), count, backends.get(),
                               tierDirectory.c_str());
  else
    world =
        nsrt_world_join(directory.c_str(), count,
                        std::make_unique<ProcessGroupCommunicator>(
                            groups[0], findWatch(groups[0]), placement.place(),
                            groups.size() > 1 ? groups[1] : "")
                            .release(),
                        backends.get(), tierDirectory.c_str());
  TORCH_CHECK_VALUE(world, nsrt_last_error());
  return {world, nsrt_world_close};
}

} // namespace

RankSession::RankSession(const std::string &directory,
                         const std::vector<std::string> &groups,
                         const std::string &device, int64_t threads,
                         IdCheck check, const std::string &tierDirectory)
    : placement(device), manifest(readManifest(directory)),
      stepInputs(inputsOf(manifest, directory), placement.place()),
      results(resultsOf(manifest)), world(nullptr, nsrt_world_close),
      process(getpid()) {
  checkSteps(manifest, placement, directory);
  dims = dimsOf(findStep(manifest, kWaitName, directory));
  TORCH_CHECK_VALUE(!groups.empty() || manifest.numDevices == 1,
                    "the artifact in ", directory, " is for ",
                    manifest.numDevices,
                    " devices; expected a process group of as many ranks");
  world =
      openWorld(directory, groups, placement, threads, check, tierDirectory);
  while (ownRank + 1 < manifest.numDevices && !ownDevice)
    ownDevice = nsrt_world_device(world.get(), ++ownRank);
}

RankSession::~RankSession() {
  std::lock_guard lock(mutex);
  for (auto &[number, step] : steps)
    releaseHandles(step);
}

void RankSession::invoke(HostCall &call, const char *function) {
  TORCH_CHECK_VALUE(getpid() == process,
                    "the tables were opened by another process; a forked one "
                    "cannot use them, since it has none of their threads");
  placement.followStream(ownDevice);
  check(call.invoke(function));
}

void RankSession::check(int32_t status) const {
  if (status == 0)
    return;
  std::string error = nsrt_last_error();
  TORCH_CHECK_WITH(
      DistBackendError,
      manifest.numDevices == 1 || !nsrt_device_group_ended(ownDevice), error);
  TORCH_CHECK_VALUE(false, error);
}

int64_t RankSession::start(const std::vector<at::Tensor> &inputs) {
  try {
    requireNoLostUpdate();
    stepInputs.check(inputs);
  } catch (const c10::Error &error) {
    refuse(error.what_without_backtrace());
    throw;
  }
  std::lock_guard one(running);
  placement.followStream(ownDevice);
  releaseDropped();
  // Others wait for their results, and come to their next start after those.
  lookUpEarlier(endOfDropped());
  return startChecked(inputs);
}

/// Autograd may hold the graph of a backward that has failed until the next
/// one, so a step that should be over counts as lost.
bool RankSession::hasLostUpdate() {
  if (manifest.numDevices == 1)
    return false;
  std::lock_guard lock(mutex);
  return lostUpdate ||
         std::any_of(steps.begin(), steps.end(),
                     [](const auto &entry) { return entry.second.sent; });
}

void RankSession::requireNoLostUpdate() {
  TORCH_CHECK_VALUE(
      !hasLostUpdate(),
      "a backward has sent its gradients and did not go on to the update, so "
      "that tables are not those of the other ranks any more; begin again "
      "from a checkpoint");
}

void RankSession::requireIdle() {
  requireNoLostUpdate();
  std::lock_guard lock(mutex);
  int64_t left =
      std::count_if(steps.begin(), steps.end(),
                    [](const auto &entry) { return !entry.second.dropped; });
  TORCH_CHECK_VALUE(left == 0, "lookups that are not over: ", left,
                    "; take their results, and run or drop their backward, "
                    "first");
  TORCH_CHECK_VALUE(keptTensors.empty(),
                    "gradients wait for an update; update by them, or drop "
                    "them with zero_grad(), first");
}

void RankSession::refuse(const std::string &text) {
  std::lock_guard one(running);
  if (manifest.numDevices == 1)
    return;
  TORCH_CHECK(nsrt_device_refuse(ownDevice, text.c_str()) == 0,
              nsrt_last_error());
  try {
    startChecked(stepInputs.makeEmpty());
  } catch (const c10::ValueError &) {
    // Intended: the other ranks have the text, the caller has its own error.
  }
}

void RankSession::notePurpose(int64_t purpose) {
  std::lock_guard one(running);
  check(nsrt_device_note_purpose(ownDevice, purpose));
}

int64_t RankSession::startChecked(const std::vector<at::Tensor> &inputs) {
  Step step;
  step.frozen = frozen;
  for (const at::Tensor &input : inputs)
    step.inputs.push_back(placement.toFunction(ownDevice, input));
  step.state = Results(results.at(kStartName));
  HostCall call(ownDevice, step.state);
  for (const at::Tensor &input : step.inputs)
    call.addTensor(input);
  try {
    invoke(call, kStartName);
  } catch (...) {
    releaseHandles(step);
    throw;
  }
  int64_t number = nextStepOfProcess++;
  keepStep(number, std::move(step));
  return number;
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

void RankSession::lookUp(int64_t number) {
  std::lock_guard one(running);
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
  runOn(step, call, kLookupName, returned, 0);
  step.lookedUp = true;
}

void RankSession::runOn(Step &step, HostCall &call, const char *function,
                        Results &returned, size_t numTensors) {
  try {
    invoke(call, function);
  } catch (...) {
    // The function has released what it does not return.
    if (returned.areWritten())
      step.state = returned.splitFrom(numTensors);
    releaseHandles(step);
    throw;
  }
  step.state = returned.splitFrom(numTensors);
}

at::Tensor RankSession::take(Results &returned, size_t index) const {
  return placement.toCaller(ownDevice, returned.take(index, placement.place()));
}

std::vector<at::Tensor> RankSession::wait(int64_t number, bool joined) {
  const char *function = joined ? kJoinedWaitName : kWaitName;
  auto specs = results.find(function);
  TORCH_CHECK_VALUE(specs != results.end(), "the artifact has no function ",
                    function,
                    ": its lookups are not all pooled, with results "
                    "of one type");
  std::lock_guard one(running);
  lookUpEarlier(number);
  Step step = takeStep(number, "its results can be asked for once");
  lookUp(step);
  Results returned(specs->second);
  HostCall call(ownDevice, returned);
  call.addResults(step.state);
  size_t count = joined ? 1 : dims.size();
  runOn(step, call, function, returned, count);
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    tensors.push_back(take(returned, i));
    step.resultRows.push_back(tensors.back().size(0));
  }
  step.waitedBy = function;
  keepStep(number, std::move(step));
  return tensors;
}

void RankSession::settle() {
  std::lock_guard one(running);
  placement.followStream(ownDevice);
  TORCH_CHECK_VALUE(nsrt_device_settle(ownDevice) == 0, nsrt_last_error());
}

void RankSession::initialize(int64_t seed) {
  TORCH_CHECK(
      nsrt_table_initialize(world.get(), -1, static_cast<uint64_t>(seed)) == 0,
      nsrt_last_error());
}

} // namespace neuroshard::runtime
