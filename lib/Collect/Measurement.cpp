//===- Measurement.cpp - Measures the compute of a shard set --------------===//

#include "neuroshard/Collect/Measurement.h"

#include "HugeBuffer.h"
#include "LocalBatch.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

using namespace neuroshard;
using namespace neuroshard::collect;

namespace {

constexpr float kLearningRate = 0.01f;

struct CloseWorld {
  void operator()(nsrt_world *world) const { nsrt_world_close(world); }
};
using World = std::unique_ptr<nsrt_world, CloseWorld>;

/// Milliseconds the device has spent in the phases of these names.
double phaseMs(const nsrt_device *device,
               std::initializer_list<const char *> names) {
  double total = 0;
  for (int32_t phase = 0; phase < nsrt_num_phases(); ++phase)
    for (const char *name : names)
      if (std::strcmp(nsrt_phase_name(phase), name) == 0)
        total += nsrt_device_phase_ms(device, phase);
  return total;
}

/// Inputs and outputs of a training step.
struct Step {
  const LocalProgram *program = nullptr;
  std::vector<JaggedIds> inputs;
  HugeBuffer *results = nullptr;
  /// Values that serve as every gradient.
  HugeBuffer *gradients = nullptr;
  int64_t number = 0;

  int64_t dimOf(const LocalLookup &lookup) const {
    int64_t dim = 0;
    for (int64_t width :
         program->tables[static_cast<size_t>(lookup.localTable)].widths)
      dim += width;
    return dim;
  }
};

/// One exchange of a step: forward, then its gradients on their way.
struct ExchangeStep {
  nsrt_routed *routed = nullptr;
  nsrt_partials *partials = nullptr;
  nsrt_partials *gradients = nullptr;
};

int64_t resultFloats(nsrt_device *device, const Step &step, nsrt_routed *routed,
                     const std::vector<LocalLookup> &lookups) {
  int64_t floats = 0;
  for (size_t k = 0; k < lookups.size(); ++k)
    floats += nsrt_result_rows(device, routed, static_cast<int64_t>(k)) *
              step.dimOf(lookups[k]);
  return floats;
}

ExchangeStep runForward(nsrt_device *device, Step &step, int64_t exchange,
                        const std::vector<LocalLookup> &lookups) {
  const JaggedIds &input = step.inputs[static_cast<size_t>(exchange)];
  ExchangeStep run;
  run.routed = nsrt_route(
      device, exchange, input.data(), input.size(), input.offsets.data(),
      static_cast<int64_t>(input.offsets.size()),
      input.weights.empty() ? nullptr : input.weights.data());
  run.partials = nsrt_lookup(device, run.routed);
  nsrt_results_start(device, run.routed, run.partials);
  float *out =
      step.results->reserve(resultFloats(device, step, run.routed, lookups));
  for (size_t k = 0; k < lookups.size(); ++k) {
    int64_t lookup = static_cast<int64_t>(k);
    nsrt_result_wait(device, run.routed, run.partials, lookup, NSRT_F32, out);
    out +=
        nsrt_result_rows(device, run.routed, lookup) * step.dimOf(lookups[k]);
  }
  return run;
}

void sendGradients(nsrt_device *device, Step &step, ExchangeStep &run,
                   const std::vector<LocalLookup> &lookups) {
  const float *next =
      step.gradients->reserve(resultFloats(device, step, run.routed, lookups));
  std::vector<int32_t> types(lookups.size(), NSRT_F32);
  std::vector<const void *> values;
  std::vector<int64_t> strides;
  for (size_t k = 0; k < lookups.size(); ++k) {
    values.push_back(next);
    strides.push_back(step.dimOf(lookups[k]));
    next += strides.back() *
            nsrt_result_rows(device, run.routed, static_cast<int64_t>(k));
  }
  run.gradients = nsrt_gradients_pack(
      device, run.routed, static_cast<int64_t>(lookups.size()), types.data(),
      values.data(), strides.data(), /*lasting=*/0); // exchanges share them
  nsrt_gradients_start(device, run.routed, run.gradients);
}

/// The host function: a training step. args: the device, the Step.
void runStep(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  Step &step = *static_cast<Step *>(args[1]);
  std::vector<ExchangeStep> runs;
  std::vector<nsrt_routed *> routed;
  std::vector<nsrt_partials *> gradients;
  for (const std::vector<LocalLookup> &lookups : step.program->lookups) {
    if (lookups.empty())
      continue;
    runs.push_back(
        runForward(device, step, static_cast<int64_t>(runs.size()), lookups));
    sendGradients(device, step, runs.back(), lookups);
    routed.push_back(runs.back().routed);
    gradients.push_back(runs.back().gradients);
  }
  nsrt_update(device, static_cast<int64_t>(runs.size()), routed.data(),
              gradients.data(), kLearningRate, step.number);
  for (const ExchangeStep &run : runs) {
    nsrt_partials_release(device, run.gradients);
    nsrt_partials_release(device, run.partials);
    nsrt_routed_release(device, run.routed);
  }
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  double place = q * static_cast<double>(values.size() - 1);
  size_t low = static_cast<size_t>(place);
  size_t high = std::min(low + 1, values.size() - 1);
  double part = place - static_cast<double>(low);
  return values[low] * (1 - part) + values[high] * part;
}

Timing summarise(const std::vector<ComputeMs> &runs) {
  std::vector<double> forward, backward, total;
  for (const ComputeMs &run : runs) {
    forward.push_back(run.forwardMs);
    backward.push_back(run.backwardMs);
    total.push_back(run.total());
  }
  Timing timing;
  timing.median = {quantile(forward, 0.5), quantile(backward, 0.5)};
  timing.spread =
      (quantile(total, 0.75) - quantile(total, 0.25)) / quantile(total, 0.5);
  timing.runs = static_cast<int>(runs.size());
  return timing;
}

} // namespace

LoadedSet::~LoadedSet() = default;

struct Measurer::State {
  MeasureOptions options;
  KernelLibrary kernels;
  HugeBuffer results, gradients;

  explicit State(MeasureOptions options)
      : options(std::move(options)), gradients(1e-2f) {}
};

namespace {

class LoadedProgram final : public LoadedSet {
public:
  LoadedProgram(Measurer::State &state, const MeasuredSet &set,
                LocalProgram local)
      : state(state), program(std::move(local)),
        batches(set, program, state.options.seed) {
    step.program = &program;
    step.results = &state.results;
    step.gradients = &state.gradients;
  }

  Expected<void> open();
  Expected<Timing> measure() override;

private:
  Expected<ComputeMs> runOnce();

  Measurer::State &state;
  LocalProgram program;
  BatchMaker batches;
  std::vector<nsrt_slot_entry> slots;
  std::vector<nsrt_lookup_entry> lookups;
  nsrt_program table = {};
  World world;
  Step step;
};

Expected<void> LoadedProgram::open() {
  for (const SlotKey &key : program.slots)
    slots.push_back(state.kernels.slot(key));
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    lookups.push_back(state.kernels.lookup(program.kernels[i]));
    lookups.back().slot = program.slotOfKernel[i];
  }
  table = {NSRT_PROGRAM_VERSION,
           static_cast<int32_t>(slots.size()),
           static_cast<int32_t>(lookups.size()),
           0,
           slots.data(),
           lookups.data()};
  const nsrt_program *programs[] = {&table};
  world.reset(nsrt_world_create(program.manifest.c_str(), programs, 1,
                                state.options.threads));
  if (!world || nsrt_world_register(world.get(), 0, "step", runStep) != 0 ||
      nsrt_world_touch_memory(world.get()) != 0)
    return failure("measurement", nsrt_last_error());
  return {};
}

Expected<ComputeMs> LoadedProgram::runOnce() {
  nsrt_device *device = nsrt_world_device(world.get(), 0);
  step.inputs = batches.next();
  ++step.number;
  nsrt_device_reset_phases(device);
  void *args[] = {device, &step};
  if (nsrt_invoke(device, "step", args) != 0)
    return failure("measurement", nsrt_device_error(device));
  return ComputeMs{phaseMs(device, {"lookup"}),
                   phaseMs(device, {"sort", "update"})};
}

Expected<Timing> LoadedProgram::measure() {
  const MeasureOptions &options = state.options;
  std::vector<ComputeMs> runs;
  double seconds = 0;
  for (int run = -options.warmUpRuns; run < options.maxRuns; ++run) {
    if (run >= options.minRuns && seconds >= options.minSeconds)
      break;
    Expected<ComputeMs> time = runOnce();
    if (!time)
      return tl::unexpected(time.error());
    if (run < 0)
      continue;
    runs.push_back(*time);
    seconds += time->total() * 1e-3;
  }
  return summarise(runs);
}

} // namespace

std::vector<ShardWork> neuroshard::describeSet(const MeasuredSet &set) {
  std::vector<ShardWork> work;
  for (const Shard &shard : set.shards) {
    int table = set.problem.tableIndex(shard.table);
    std::vector<int> features;
    for (size_t f = 0; f < set.problem.features.size(); ++f)
      if (set.problem.features[f].table == table)
        features.push_back(static_cast<int>(f));
    work.push_back(describeShard(set.problem, table, features, shard));
  }
  return work;
}

Measurer::Measurer(MeasureOptions options)
    : state(std::make_unique<State>(std::move(options))) {}
Measurer::~Measurer() = default;

Expected<void> Measurer::compile(
    std::span<const MeasuredSet> sets,
    const std::function<void(size_t done, size_t all)> &progress) {
  std::set<SlotKey> slots;
  std::set<LookupKey> lookups;
  for (const MeasuredSet &set : sets) {
    Expected<LocalProgram> program = makeLocalProgram(set);
    if (!program)
      return tl::unexpected(program.error());
    slots.insert(program->slots.begin(), program->slots.end());
    lookups.insert(program->kernels.begin(), program->kernels.end());
  }
  std::string error = state->kernels.add({slots.begin(), slots.end()},
                                         {lookups.begin(), lookups.end()},
                                         state->options.targetCpu, progress);
  if (!error.empty())
    return failure("kernels", error);
  return {};
}

Expected<std::unique_ptr<LoadedSet>> Measurer::load(const MeasuredSet &set) {
  if (Expected<void> compiled = compile({&set, 1}, [](size_t, size_t) {});
      !compiled)
    return tl::unexpected(compiled.error());
  Expected<LocalProgram> program = makeLocalProgram(set);
  if (!program)
    return tl::unexpected(program.error());
  auto loaded =
      std::make_unique<LoadedProgram>(*state, set, std::move(*program));
  if (Expected<void> opened = loaded->open(); !opened)
    return tl::unexpected(opened.error());
  return loaded;
}

Expected<Timing> Measurer::measure(const MeasuredSet &set) {
  Expected<std::unique_ptr<LoadedSet>> loaded = load(set);
  if (!loaded)
    return tl::unexpected(loaded.error());
  return (*loaded)->measure();
}
