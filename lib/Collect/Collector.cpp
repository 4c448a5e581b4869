//===- Collector.cpp - Measures shard sets for a data file ----------------===//
//
// Sample i of a run is always the same set, so a run can be resumed and made
// again. A repeat of sample i comes half a run after it.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Collect/Collector.h"

#include "Machine.h"
#include "ReferenceKernel.h"
#include "Rejection.h"
#include "neuroshard/Collect/SetList.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

using namespace neuroshard;
using namespace neuroshard::collect;

namespace {

constexpr double kSaveSeconds = 60;
/// Kernels of this many sets are compiled together.
constexpr int64_t kSetsAhead = 200;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// One measurement of a run: which set, and whether it is its second.
struct Job {
  int64_t set = 0;
  bool isRepeat = false;
};

bool isHeldOut(const CollectOptions &options, int64_t set) {
  return isHeldOutSet(options.heldOutShare, set);
}

/// All sets in order; in the second half of the run the held-out sets of the
/// first half come again, as many as are asked for.
std::vector<Job> makeJobs(const CollectOptions &options) {
  std::vector<Job> jobs;
  int64_t half = options.samples / 2;
  std::vector<int64_t> again;
  for (int64_t set = 0; set < half; ++set)
    if (isHeldOut(options, set))
      again.push_back(set);
  for (int64_t set = 0; set < half; ++set)
    if (!isHeldOut(options, set))
      again.push_back(set);
  again.resize(
      std::min<size_t>(again.size(), static_cast<size_t>(options.repeats)));
  std::sort(again.begin(), again.end());
  size_t next = 0;
  for (int64_t set = 0; set < options.samples; ++set) {
    jobs.push_back({set, false});
    while (next < again.size() && again[next] + half <= set)
      jobs.push_back({again[next++], true});
  }
  for (; next < again.size(); ++next)
    jobs.push_back({again[next], true});
  return jobs;
}

class Collection {
public:
  Collection(const CollectOptions &options, const std::atomic<bool> &stop)
      : options(options), stop(stop), pool(makeTablePool(kPoolSeed)),
        jobs(makeJobs(options)), measurer(options.measure) {}

  Expected<void> open();
  Expected<void>
  run(const std::function<void(const std::string &)> &say,
      const std::function<void(const CollectProgress &)> &progress);

private:
  MeasuredSet setOf(const Job &job) const;
  Expected<void>
  compileAhead(size_t first,
               const std::function<void(const std::string &)> &say);
  Expected<void> measure(size_t job);
  Expected<void> save();

  const CollectOptions &options;
  const std::atomic<bool> &stop;
  TablePool pool;
  std::vector<Job> jobs;
  Measurer measurer;
  ReferenceKernel reference{measurer};
  /// The reference's time after the last sample, if nothing has run since.
  std::optional<double> lastReference;
  ComputeSamples data;
  /// Jobs done, rejected ones included.
  int64_t done = 0;
  int64_t rejected = 0;
  std::map<int64_t, int64_t> sampleOfSet;
};

MeasuredSet Collection::setOf(const Job &job) const {
  RandomSetOptions setOptions;
  setOptions.heldOut = isHeldOut(options, job.set);
  setOptions.memoryBytes = static_cast<int64_t>(options.setGiB * 0x1p30);
  return makeRandomSet(pool, setOptions, options.seed, job.set);
}

Expected<void> Collection::open() {
  std::map<std::string, std::string> facts = options.facts;
  facts.merge(std::map(describeMachine()));
  facts["device_class"] = kCpuClass;
  facts["threads"] = std::to_string(options.measure.threads);
  facts["target_cpu"] = options.measure.targetCpu;
  facts["seed"] = std::to_string(options.seed);
  facts["set_gib"] = std::to_string(options.setGiB);
  facts["pool_seed"] = std::to_string(kPoolSeed);
  facts["samples_planned"] = std::to_string(options.samples);
  facts["rejection_rule"] = rejectionRule();
  facts["measured"] = "true";
  data.metadata = facts;
  data.access = pool.access;
  if (!std::filesystem::exists(options.path))
    return save(); // a file that cannot be written is an error now, not later
  if (!options.resume)
    return failure(options.path, "exists already; add --resume to go on with "
                                 "it, or name another file");
  Expected<ComputeSamples> old = readComputeSamples(options.path);
  if (!old)
    return tl::unexpected(old.error());
  for (const auto &[key, value] : facts)
    if (auto it = old->metadata.find(key);
        key != "created" && it != old->metadata.end() && it->second != value)
      return failure(options.path, "cannot go on with it: " + key + " is '" +
                                       value + "' now and was '" + it->second +
                                       "'");
  data.samples = std::move(old->samples);
  data.metadata = std::move(old->metadata);
  done = std::strtoll(data.metadata["jobs_done"].c_str(), nullptr, 10);
  rejected = std::strtoll(data.metadata["jobs_rejected"].c_str(), nullptr, 10);
  for (size_t i = 0; i < data.samples.size(); ++i) {
    for (ShardWork &shard : data.samples[i].shards)
      shard.access = &(*pool.access)[static_cast<size_t>(shard.table)];
    if (data.samples[i].repeatOf < 0)
      sampleOfSet[data.samples[i].set] = static_cast<int64_t>(i);
  }
  return {};
}

Expected<void> Collection::save() {
  data.metadata["jobs_done"] = std::to_string(done);
  data.metadata["jobs_rejected"] = std::to_string(rejected);
  return writeComputeSamples(data, options.path);
}

Expected<void>
Collection::compileAhead(size_t first,
                         const std::function<void(const std::string &)> &say) {
  std::vector<MeasuredSet> sets;
  for (size_t i = first;
       i < std::min(jobs.size(), first + static_cast<size_t>(kSetsAhead)); ++i)
    sets.push_back(setOf(jobs[i]));
  return measurer.compile(sets, [&](size_t kernels, size_t all) {
    if (all > 0)
      say("compiling kernels: " + std::to_string(kernels) + " of " +
          std::to_string(all));
  });
}

Expected<void> Collection::measure(size_t index) {
  const Job &job = jobs[index];
  if (job.isRepeat && !sampleOfSet.contains(job.set))
    return {}; // the first one was rejected
  MeasuredSet set = setOf(job);
  if (!lastReference) {
    Expected<double> before = reference.measureMs();
    if (!before)
      return tl::unexpected(before.error());
    lastReference = *before;
  }
  double before = *lastReference;
  Expected<Timing> timing = measurer.measure(set);
  if (!timing)
    return tl::unexpected(timing.error());
  Expected<double> after = reference.measureMs();
  if (!after)
    return tl::unexpected(after.error());

  lastReference = *after;

  ComputeSample sample = sampleOf(set, pool);
  sample.set = job.set;
  sample.measured = timing->median;
  sample.spread = timing->spread;
  sample.referenceBeforeMs = before;
  sample.referenceAfterMs = *after;
  sample.heldOut = isHeldOut(options, job.set);
  sample.time = std::chrono::duration_cast<std::chrono::seconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count();
  if (job.isRepeat)
    sample.repeatOf = sampleOfSet.at(job.set);
  if (isDisturbed(before, *after, timing->spread)) {
    ++rejected;
    return {};
  }
  if (!job.isRepeat)
    sampleOfSet[job.set] = static_cast<int64_t>(data.samples.size());
  data.samples.push_back(std::move(sample));
  return {};
}

Expected<void>
Collection::run(const std::function<void(const std::string &)> &say,
                const std::function<void(const CollectProgress &)> &progress) {
  double begin = now(), saved = begin;
  size_t first = static_cast<size_t>(done), compiled = first;
  progress({done, static_cast<int64_t>(jobs.size()), rejected, 0});
  for (size_t i = first; i < jobs.size() && !stop; ++i) {
    if (i >= compiled) {
      if (Expected<void> ready = compileAhead(i, say); !ready) {
        // A signal makes LLVM remove the files it is compiling into.
        if (stop)
          break;
        return ready;
      }
      compiled = i + static_cast<size_t>(kSetsAhead);
      lastReference.reset();
    }
    if (Expected<void> measured = measure(i); !measured) {
      if (stop)
        break;
      (void)save();
      return measured;
    }
    ++done;
    double perJob = (now() - begin) / static_cast<double>(i - first + 1);
    progress({done, static_cast<int64_t>(jobs.size()), rejected,
              perJob * static_cast<double>(jobs.size() - i - 1)});
    if (now() - saved < kSaveSeconds)
      continue;
    if (Expected<void> written = save(); !written)
      return written;
    saved = now();
    lastReference.reset();
  }
  return save();
}

} // namespace

Expected<void> neuroshard::collectCompute(
    const CollectOptions &options, const std::atomic<bool> &stop,
    const std::function<void(const std::string &)> &say,
    const std::function<void(const CollectProgress &)> &progress) {
  Collection collection(options, stop);
  if (Expected<void> opened = collection.open(); !opened)
    return opened;
  return collection.run(say, progress);
}
