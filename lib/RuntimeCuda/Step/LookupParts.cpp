//===- LookupParts.cpp - Inputs and outputs of lookups --------------------===//
//
// Checks everything that kernels do not check themselves.
//
//===----------------------------------------------------------------------===//

#include "LookupParts.h"
#include "Driver/Status.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <optional>

namespace neuroshard::cuda {
namespace {

/// Positions and tasks that the word of a bad id has room for.
constexpr int64_t kMaxIds = int64_t{1} << NSG_BAD_ID_POSITION_BITS;
constexpr size_t kMaxParts = size_t{1} << (64 - NSG_BAD_ID_POSITION_BITS);
constexpr int64_t kMaxPooling = int64_t{1} << 31;

/// Makes parts from one jagged input.
class InputReader {
public:
  InputReader(const Binding &binding, size_t exchange, const nsc_input &input)
      : spec(binding.manifest.exchanges[exchange]), input(input) {
    int64_t features = static_cast<int64_t>(spec.features.size());
    if (input.num_ids < 0 || input.num_ids >= kMaxIds)
      wrong("num_ids", "a number of ids", input.num_ids);
    if (input.batch < 0 || input.batch >= kMaxIds / features)
      wrong("batch", "a number of samples", input.batch);
    if (input.num_ids > 0 && !input.ids)
      fail(name(), ": its ids are null");
    if (!input.offsets)
      checkFixed(features);
    else if (!isMultiple(input.offsets, 8))
      fail(name(), ": its offsets are not aligned to 8 bytes");
    if (input.feature_begin)
      checkFeatures(features);
  }

  /// Fills all fields but lookup and results. Returns false if the number of
  /// ids of each feature is needed and not known.
  bool read(const ExchangeLookup &lookup, Part &part) const {
    int64_t feature = lookup.feature;
    bool fixed = !input.offsets;
    bool alone = spec.features.size() == 1;
    bool known = fixed || input.feature_begin;
    part.feature = lookup.feature;
    part.exact = known || alone || !lookup.pooled();
    part.ids = input.ids;
    part.sample_weights = lookup.weighted ? input.sample_weights : nullptr;
    part.bags = input.batch;
    part.pooling = fixed ? input.pooling : 0;
    part.id_begin = fixed   ? feature * input.batch * input.pooling
                    : known ? input.feature_begin[feature]
                            : 0;
    part.id_end = fixed   ? part.id_begin + input.batch * input.pooling
                  : known ? input.feature_begin[feature + 1]
                          : input.num_ids;
    if (lookup.pooled())
      part.offsets = fixed ? nullptr : input.offsets + feature * input.batch;
    return lookup.pooled() || known || alone;
  }

private:
  std::string name() const { return "input \"" + spec.input + "\""; }

  [[noreturn]] void wrong(const char *field, const char *expected,
                          int64_t found) const {
    fail(name(), ": expected ", field, " to be ", expected, ", found ", found);
  }

  void checkFixed(int64_t features) const {
    if (input.pooling < 0 || input.pooling >= kMaxPooling)
      wrong("pooling", "the ids of every bag, as it has no offsets",
            input.pooling);
    if (features * input.batch >= kMaxIds / (input.pooling + 1) ||
        input.num_ids != features * input.batch * input.pooling)
      fail(name(), ": expected num_ids to be ", features, " features x ",
           input.batch, " samples x ", input.pooling,
           " ids, as it has no offsets, found ", input.num_ids);
  }

  void checkFeatures(int64_t features) const {
    int64_t last = 0;
    for (int64_t i = 0; i <= features; ++i) {
      int64_t begin = input.feature_begin[i];
      if (begin < last || begin > input.num_ids)
        fail(name(), ": expected feature_begin[", i, "] from ", last, " to ",
             input.num_ids, ", found ", begin);
      last = begin;
    }
  }

  const ExchangeSpec &spec;
  const nsc_input &input;
};

class PartChecker {
public:
  PartChecker(const Binding &binding, std::span<const Part> parts, size_t index)
      : binding(binding), part(parts[index]), index(index) {}

  void run(bool training) const {
    if (part.lookup < 0 ||
        static_cast<size_t>(part.lookup) >= binding.numLookups())
      fail("part ", index, ": there is no lookup ", part.lookup,
           "; the device has ", binding.numLookups());
    checkIds();
    if (lookup().pooled && !part.isSummed)
      checkBags();
    if (lookup().weighted && !part.isSummed && numIds() > 0 &&
        !part.sample_weights)
      fail(name(), ": the lookup is weighted, but sample_weights is null");
    checkOutput();
    // Callers of pooled lookups have already left padding out.
    if (training && !lookup().pooled &&
        binding.specOf(static_cast<size_t>(part.lookup)).paddingIdx &&
        binding.program.slots[static_cast<size_t>(lookup().slot)].trainable())
      fail(name(), ": a padding_idx without pooling cannot be trained on a "
                   "GPU");
  }

private:
  const GpuLookup &lookup() const {
    return binding.program.lookups[static_cast<size_t>(part.lookup)];
  }
  int64_t numIds() const { return part.id_end - part.id_begin; }
  std::string name() const {
    std::ostringstream text;
    text << "part " << index << ", "
         << binding.nameOf(static_cast<size_t>(part.lookup));
    return text.str();
  }

  void checkIds() const {
    if (part.id_begin < 0 || part.id_end < part.id_begin ||
        part.id_end >= kMaxIds)
      fail(name(), ": [id_begin, id_end) is [", part.id_begin, ", ",
           part.id_end, ")");
    if (numIds() > 0 && !part.ids)
      fail(name(), ": ids is null");
    if (!isMultiple(part.ids, static_cast<uintptr_t>(lookup().idBytes)))
      fail(name(), ": ids is not aligned to its ", lookup().idBytes, " bytes");
    if (!isMultiple(part.sample_weights, 4))
      fail(name(), ": sample_weights is not aligned to 4 bytes");
  }

  void checkBags() const {
    if (part.bags < 0 || part.bags >= kMaxIds)
      fail(name(), ": expected a number of bags, found ", part.bags);
    if (part.offsets) {
      if (!isMultiple(part.offsets, 8))
        fail(name(), ": offsets is not aligned to 8 bytes");
      return;
    }
    if (lookup().variantFor(/*fixed=*/true) < 0)
      fail(name(), ": offsets is null, and the program has no kernel for bags "
                   "of a fixed size");
    if (part.pooling < 0 || part.pooling >= kMaxPooling ||
        part.bags >= kMaxIds / (part.pooling + 1) ||
        part.bags * part.pooling != numIds())
      fail(name(), ": offsets is null, so id_end - id_begin must be ",
           part.bags, " bags x ", part.pooling, " ids, found ", numIds());
  }

  /// Kernels store 16 bytes at a time if rows are a multiple of 16 bytes.
  void checkOutput() const {
    int64_t bytes = elementBytes(lookup().output);
    int64_t dim = binding.program.slots[static_cast<size_t>(lookup().slot)].dim;
    uintptr_t alignment =
        dim * bytes % 16 == 0 ? 16 : static_cast<uintptr_t>(bytes);
    if (!isMultiple(part.out, alignment))
      fail(name(), ": out is not aligned to ", alignment, " bytes");
    if (part.out && itemsOf(lookup(), part) > 1 &&
        (part.out_stride < dim || part.out_stride > kMaxStride ||
         part.out_stride * bytes % static_cast<int64_t>(alignment) != 0))
      fail(name(), ": expected out_stride to be at least ", dim, ", at most ",
           kMaxStride, " and a multiple of ",
           static_cast<int64_t>(alignment) / bytes, ", found ",
           part.out_stride);
  }

  const Binding &binding;
  const Part &part;
  size_t index;
};

/// Throws for lookups that do not read all ids of an input.
void checkWhole(const Binding &binding, size_t lookup) {
  size_t slot = static_cast<size_t>(binding.program.lookups[lookup].slot);
  const char *what = nullptr;
  if (binding.specOf(lookup).paddingIdx)
    what = " has a padding_idx: leave such ids out";
  if (binding.shardOf(slot).rows.size() != binding.tableOf(slot).rows)
    what = " reads a shard of rows: leave out the ids of others";
  if (what)
    fail(binding.nameOf(lookup), what, " and pass parts to nsc_forward");
}

} // namespace

std::vector<Part> makeParts(const Binding &binding,
                            std::span<const nsc_input> inputs,
                            std::span<const nsc_output> outputs) {
  if (inputs.size() != binding.manifest.exchanges.size())
    fail("expected ", binding.manifest.exchanges.size(),
         " inputs, one per exchange, found ", inputs.size());
  if (outputs.size() != binding.numLookups())
    fail("expected ", binding.numLookups(),
         " outputs, one per lookup of the device, found ", outputs.size());
  std::vector<std::optional<InputReader>> readers(inputs.size());
  std::vector<Part> parts(binding.numLookups());
  for (size_t i = 0; i < parts.size(); ++i) {
    checkWhole(binding, i);
    size_t exchange = static_cast<size_t>(binding.bound().lookups[i].exchange);
    std::optional<InputReader> &reader = readers[exchange];
    if (!reader)
      reader.emplace(binding, exchange, inputs[exchange]);
    Part &part = parts[i];
    part.lookup = static_cast<int32_t>(i);
    if (!reader->read(binding.specOf(i), part))
      fail(binding.nameOf(i),
           " is not pooled: its input needs feature_begin, which says how many "
           "ids each feature has");
    part.out = outputs[i].out;
    part.out_stride = outputs[i].stride;
  }
  return parts;
}

void checkParts(const Binding &binding, std::span<const Part> parts,
                bool training) {
  if (parts.size() > kMaxParts)
    fail("at most ", kMaxParts, " parts can be computed at once, found ",
         parts.size());
  for (size_t i = 0; i < parts.size(); ++i)
    PartChecker(binding, parts, i).run(training);
}

} // namespace neuroshard::cuda
