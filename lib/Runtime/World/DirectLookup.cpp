//===- DirectLookup.cpp - Lookups without a step --------------------------===//
//
// The ids of a lookup are checked, and the rows of the first of them fetched
// into the caches, while the lookup before it runs: kernels fetch the rows of
// later ids themselves, and the few ids of a request would wait for memory.
//
//===----------------------------------------------------------------------===//

#include "DirectLookup.h"

#include "Cpu/BadIds.h"
#include "Cpu/CheckOffsets.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace neuroshard::runtime {

namespace {

/// How far ahead kernels fetch rows.
constexpr int64_t kIdsAhead = 48;
constexpr int64_t kCacheLineBytes = 64;

/// The ids of one lookup of a request.
struct Part {
  const nsrt_lookup_entry *kernel;
  const ExchangeLookup *lookup;
  const Shard *shard;
  /// Where bags begin: offsets[0] to offsets[batch].
  const int64_t *offsets;
  bool leavesOut = false; ///< padding, or unknown ids.
};

template <typename Id> class Request {
public:
  Request(const nsrt_world &world, const DirectRequest &request)
      : manifest(world.manifest()), device(*world.devices.front()),
        exchange(manifest.exchanges.front()), input(request.input),
        batch(request.batch), dropsUnknown(request.dropsUnknown),
        featureWeights(request.featureWeights),
        ids(static_cast<const Id *>(input.ids)) {}

  void run(float *const *outs, const int64_t *strides) const {
    const std::vector<LookupBinding> &bound = manifest.bindings.front().lookups;
    if (bound.empty())
      return;
    Part next = check(bound[0]);
    for (size_t i = 0; i < bound.size(); ++i) {
      Part part = next;
      if (i + 1 < bound.size())
        next = check(bound[i + 1]);
      answer(part, outs[bound[i].lookup], strides[bound[i].lookup]);
    }
  }

private:
  Part check(const LookupBinding &bound) const {
    Part part;
    size_t index = &bound - manifest.bindings.front().lookups.data();
    part.kernel = &device.program.lookups[index];
    part.lookup = &exchange.lookups[static_cast<size_t>(bound.lookup)];
    part.shard = &device.slots[static_cast<size_t>(bound.slot)];
    part.offsets = input.offsets + part.lookup->feature * batch;
    Id last = lastRowOf<Id>(part.shard->table().rows);
    int64_t begin = part.offsets[0], end = part.offsets[batch];
    Id bad = 0; // sign bit; no early exit, to vectorise
    for (int64_t i = begin; i < end; ++i)
      bad |= outOfRange(ids[i], last);
    part.leavesOut = bad < 0;
    if (bad < 0 && !dropsUnknown)
      throwBadId(part, bound.lookup, last);
    if (part.lookup->dropsPadding()) {
      auto padding = static_cast<Id>(*part.lookup->paddingIdx);
      part.leavesOut |= std::find(ids + begin, ids + end, padding) != ids + end;
    }
    prefetch(part, last);
    return part;
  }

  [[noreturn]] void throwBadId(const Part &part, int32_t lookup,
                               Id last) const {
    const Id *found =
        std::find_if(ids + part.offsets[0], ids + part.offsets[batch],
                     [&](Id id) { return outOfRange(id, last) < 0; });
    throwBadIdAt(found - ids, exchange, lookup, input, manifest, batch);
  }

  void prefetch(const Part &part, Id last) const {
    const std::byte *weights = part.shard->weights();
    int64_t stride = part.shard->weightStrideBytes();
    int64_t end = std::min(part.offsets[0] + kIdsAhead, part.offsets[batch]);
    for (int64_t i = part.offsets[0]; i < end; ++i) {
      if (outOfRange(ids[i], last) < 0)
        continue;
      const std::byte *row = weights + static_cast<int64_t>(ids[i]) * stride;
      for (int64_t byte = 0; byte < stride; byte += kCacheLineBytes)
        __builtin_prefetch(row + byte);
      __builtin_prefetch(row + stride - 1);
    }
  }

  void answer(const Part &part, float *out, int64_t stride) const {
    if (part.lookup->pooled() && part.leavesOut)
      return answerWithout(part, out, stride);
    if (part.leavesOut)
      return answerRowByRow(part, out, stride);
    int64_t begin = part.offsets[0];
    if (!part.lookup->pooled())
      return runKernel(part, ids + begin, nullptr, nullptr, out, stride,
                       part.offsets[batch] - begin);
    runKernel(part, ids, part.offsets, weightsOf(part), out, stride, batch);
    divideMeans(part, part.offsets, out, stride);
  }

  /// The weights of a lookup, where weight i is that of id i of the input; null
  /// if it reads none.
  const float *weightsOf(const Part &part) const {
    if (!part.lookup->weighted)
      return nullptr;
    if (!featureWeights)
      return input.weights;
    // Not a pointer difference: there is no array that both are in.
    auto first = reinterpret_cast<uintptr_t>(
        featureWeights[static_cast<size_t>(part.lookup->feature)]);
    return reinterpret_cast<const float *>(
        first - static_cast<uintptr_t>(part.offsets[0]) * sizeof(float));
  }

  void runKernel(const Part &part, const Id *from, const int64_t *offsets,
                 const float *weights, float *out, int64_t stride,
                 int64_t count) const {
    part.kernel->forward(part.shard->weights(), from, offsets, weights, out,
                         stride, 0, count);
  }

  void divideMeans(const Part &part, const int64_t *offsets, float *out,
                   int64_t stride) const {
    if (part.lookup->pooling != Pooling::Mean)
      return;
    for (int64_t bag = 0; bag < batch; ++bag)
      divideRow(out + bag * stride, part.shard->table().dim,
                static_cast<float>(offsets[bag + 1] - offsets[bag]));
  }

  /// With the ids that stay, copied.
  void answerWithout(const Part &part, float *out, int64_t stride) const {
    Id last = lastRowOf<Id>(part.shard->table().rows);
    const float *given = weightsOf(part);
    std::vector<Id> kept;
    std::vector<float> weights;
    std::vector<int64_t> offsets = {0};
    for (int64_t bag = 0; bag < batch; ++bag) {
      for (int64_t i = part.offsets[bag]; i < part.offsets[bag + 1]; ++i) {
        bool isPadding = part.lookup->dropsPadding() &&
                         ids[i] == static_cast<Id>(*part.lookup->paddingIdx);
        if (isPadding || outOfRange(ids[i], last) < 0)
          continue;
        kept.push_back(ids[i]);
        if (given)
          weights.push_back(given[i]);
      }
      offsets.push_back(static_cast<int64_t>(kept.size()));
    }
    runKernel(part, kept.data(), offsets.data(), weights.data(), out, stride,
              batch);
    divideMeans(part, offsets.data(), out, stride);
  }

  /// Zeros for ids that no row has.
  void answerRowByRow(const Part &part, float *out, int64_t stride) const {
    Id last = lastRowOf<Id>(part.shard->table().rows);
    for (int64_t i = part.offsets[0]; i < part.offsets[batch]; ++i) {
      if (outOfRange(ids[i], last) < 0)
        std::fill_n(out, part.shard->table().dim, 0.0f);
      else
        runKernel(part, ids + i, nullptr, nullptr, out, stride, 1);
      out += stride;
    }
  }

  const Manifest &manifest;
  const Device &device;
  const ExchangeSpec &exchange;
  const JaggedInput &input;
  int64_t batch;
  bool dropsUnknown;
  const float *const *featureWeights;
  const Id *ids;
};

/// Throws a RuntimeError unless lookups need no exchange.
void requireDirect(const nsrt_world &world) {
  const Manifest &manifest = world.manifest();
  if (manifest.numDevices != 1)
    fail("lookups without a step need an artifact for 1 device, found one for ",
         manifest.numDevices, ": run its function \"forward\" instead");
  if (manifest.exchanges.size() != 1)
    fail("lookups without a step need an artifact with one input, found ",
         manifest.exchanges.size());
  if (manifest.shards.size() != manifest.tables.size())
    fail("lookups without a step need whole tables, but the plan cuts some");
  if (world.devices.front()->memory || manifest.hasRowCaches())
    fail("lookups without a step need all rows in memory of the host");
  for (const auto &[table, history] : world.devices.front()->histories)
    if (!history.steps.empty())
      fail("rows of table \"", manifest.tables[static_cast<size_t>(table)].name,
           "\" have not caught up with the last updates (catch_up), which "
           "nsrt_device_shard lets them do");
}

bool readsWeights(const ExchangeSpec &exchange, size_t feature) {
  return std::ranges::any_of(
      exchange.lookups, [&](const ExchangeLookup &lookup) {
        return lookup.weighted &&
               static_cast<size_t>(lookup.feature) == feature;
      });
}

/// Of valid offsets.
void checkFeatureWeights(const ExchangeSpec &exchange,
                         const DirectRequest &request) {
  for (size_t i = 0; i < exchange.features.size(); ++i) {
    const int64_t *bags =
        request.input.offsets + static_cast<int64_t>(i) * request.batch;
    bool reads = readsWeights(exchange, i), has = request.featureWeights[i];
    if (reads && !has && bags[request.batch] > bags[0])
      fail(exchange.where, "feature \"", exchange.features[i],
           "\": expected a weight for each id, found none");
    if (has && !reads)
      fail(exchange.where, "feature \"", exchange.features[i],
           "\": expected no weights, as no lookup reads them, found some");
  }
}

void checkInput(const ExchangeSpec &exchange, const DirectRequest &request) {
  const JaggedInput &input = request.input;
  if (input.numIds < 0)
    fail(exchange.where, "expected num_ids of at least 0, found ",
         input.numIds);
  if (!input.offsets || (!input.ids && input.numIds > 0))
    fail(exchange.where, "expected offsets, and ", input.numIds,
         " ids, found a null pointer");
  if (!request.featureWeights && input.numIds > 0 &&
      exchange.weighted != (input.weights != nullptr))
    fail(exchange.where, exchange.weighted
                             ? "expected a weight for each id, found none"
                             : "expected no weights, found some");
  checkOffsets(exchange, input);
  if (request.featureWeights)
    checkFeatureWeights(exchange, request);
}

void checkResults(const Manifest &manifest, const int64_t *offsets,
                  int64_t batch, float *const *outs, const int64_t *strides) {
  const ExchangeSpec &exchange = manifest.exchanges.front();
  for (size_t i = 0; i < exchange.lookups.size(); ++i) {
    const ExchangeLookup &lookup = exchange.lookups[i];
    int64_t dim = manifest.tables[static_cast<size_t>(lookup.table)].dim;
    const int64_t *bags = offsets + lookup.feature * batch;
    int64_t rows = lookup.pooled() ? batch : bags[batch] - bags[0];
    if (!outs || !strides || (!outs[i] && rows > 0))
      fail(exchange.where, "expected memory and a stride for the results of ",
           exchange.lookups.size(), " lookups, found a null pointer");
    if (strides[i] < dim)
      fail(exchange.where, "lookup ", i, ": expected a stride of at least ",
           dim, " values, found ", strides[i]);
  }
}

} // namespace

void lookUpDirectly(const nsrt_world &world, DirectRequest request,
                    float *const *outs, const int64_t *strides) {
  requireDirect(world);
  const ExchangeSpec &exchange = world.manifest().exchanges.front();
  int64_t batch = request.batch;
  if (batch < 0 || batch > std::numeric_limits<int32_t>::max())
    fail(exchange.where, "expected a batch in [0, 2^31), found ", batch);
  request.input.numOffsets =
      static_cast<int64_t>(exchange.features.size()) * batch + 1;
  checkInput(exchange, request);
  checkResults(world.manifest(), request.input.offsets, batch, outs, strides);
  if (exchange.idType == IdType::I32)
    Request<int32_t>(world, request).run(outs, strides);
  else
    Request<int64_t>(world, request).run(outs, strides);
}

} // namespace neuroshard::runtime
