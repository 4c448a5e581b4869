//===- ComputeFeatures.cpp - Features of a shard --------------------------===//
///
/// \file
/// Names and values are written down side by side, in one order. The byte
/// counts here are the features' own: a change of the roofline's formulas must
/// not change what a trained model sees.
//===----------------------------------------------------------------------===//

#include "neuroshard/CostModel/ComputeFeatures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace neuroshard;

namespace {

constexpr std::array<std::string_view, kFeatureCount> kNames = {
    "reuse_1",
    "reuse_2",
    "reuse_4",
    "reuse_8",
    "reuse_16",
    "reuse_32",
    "reuse_64",
    "reuse_128",
    "reuse_256",
    "reuse_512",
    "reuse_1024",
    "reuse_2048",
    "reuse_4096",
    "reuse_8192",
    "reuse_16384",
    "reuse_32768",
    "reuse_more",
    "reuse_known",
    "lookups_reused_1",
    "lookups_reused_2",
    "lookups_reused_4",
    "lookups_reused_8",
    "lookups_reused_16",
    "lookups_reused_32",
    "lookups_reused_64",
    "lookups_reused_128",
    "lookups_reused_256",
    "lookups_reused_512",
    "width_in_128",
    "log_width",
    "width_share",
    "width_tail",
    "log_pooling",
    "log_rows",
    "row_share",
    "row_split",
    "log_batch",
    "log_features",
    "log_lookups",
    "log_unique_rows",
    "unique_share",
    "log_output_rows",
    "log_bag_length",
    "log_update_lookups",
    "log_update_unique_rows",
    "log_update_gradient_rows",
    "element_in_4_bytes",
    "bf16",
    "output_in_4_bytes",
    "id_in_8_bytes",
    "weighted",
    "sgd",
    "adagrad",
    "rowwise_adagrad",
    "adam",
    "exact_norms",
    "replicated",
    "log_table_bytes",
    "log_read_bytes",
    "log_unique_bytes",
    "log_state_bytes",
    "log_unique_state_bytes",
    "log_result_bytes",
    "log_update_bytes",
};
static_assert(!kNames.back().empty(), "a name for each feature");

/// Bins of the histogram that also have a share of the lookups.
constexpr size_t kReuseShares = 10;

/// Columns per pass of a kernel's vector loop.
constexpr int64_t kVectorColumns = 16;

/// Writes numbers one after the other.
class Writer {
public:
  explicit Writer(std::span<float> out) : out(out) {}
  void put(double value) {
    out[next++] = std::isfinite(value) ? static_cast<float>(value) : 0.0f;
  }
  void putLog(double count) { put(std::log1p(std::max(0.0, count))); }
  size_t written() const { return next; }

private:
  std::span<float> out;
  size_t next = 0;
};

/// Samples in the global batch: ids over ids per sample.
double batchOf(const ShardWork &shard) {
  return shard.pooling > 0 ? shard.lookups / shard.pooling
                           : shard.outputRows / std::max(1, shard.features);
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// Optimizer state of a row.
double stateBytes(const ShardWork &shard) {
  OptimizerStates states = propertiesOf(shard.optimizer).states;
  return states.perElement * static_cast<double>(shard.width) * 4 +
         states.perRow * 4;
}

/// Mean times an id of a bin is seen: its upper end, near enough.
double timesSeen(size_t bin) { return std::exp2(static_cast<double>(bin)); }

/// The histogram of distinct ids, and the shares of the lookups that go to ids
/// seen at most once, twice, ... 512 times.
void putReuse(const ShardWork &shard, Writer &out) {
  for (size_t i = 0; i < kReuseBins; ++i)
    out.put(shard.access ? shard.access->reuse[i] : 0);
  out.put(shard.access != nullptr);
  double all = 0, upTo = 0;
  for (size_t i = 0; shard.access && i < kReuseBins; ++i)
    all += shard.access->reuse[i] * timesSeen(i);
  for (size_t i = 0; i < kReuseShares; ++i) {
    upTo += shard.access ? shard.access->reuse[i] * timesSeen(i) : 0;
    out.put(share(upTo, all));
  }
}

void putShape(const ShardWork &shard, Writer &out) {
  double width = static_cast<double>(shard.width);
  out.put(width / 128);
  out.putLog(width);
  out.put(share(width, static_cast<double>(shard.tableDim)));
  out.put(static_cast<double>(shard.width % kVectorColumns) / kVectorColumns);
  out.putLog(shard.pooling);
  out.putLog(static_cast<double>(shard.rows));
  out.put(share(static_cast<double>(shard.rows),
                static_cast<double>(shard.tableRows)));
  out.put(shard.rowSplit);
}

void putCounts(const ShardWork &shard, Writer &out) {
  out.putLog(batchOf(shard));
  out.putLog(shard.features);
  out.putLog(shard.lookups);
  out.putLog(shard.uniqueRows);
  out.put(share(shard.uniqueRows, shard.lookups));
  out.putLog(shard.outputRows);
  out.putLog(share(shard.lookups, shard.outputRows));
  out.putLog(shard.updateLookups);
  out.putLog(shard.updateUniqueRows);
  out.putLog(shard.updateGradientRows);
}

void putTypes(const ShardWork &shard, Writer &out) {
  out.put(static_cast<double>(rowBytes(shard.width, shard.elementType)) / 4 /
          static_cast<double>(shard.width));
  out.put(shard.elementType == ElementType::BF16);
  out.put(static_cast<double>(elementBytes(shard.outputType)) / 4);
  out.put(static_cast<double>(shard.idBytes) / 8);
  out.put(shard.weighted);
  OptimizerKind optimizer = pricedAs(shard.optimizer);
  for (OptimizerKind kind : kPricedOptimizers)
    out.put(optimizer == kind);
  out.put(shard.exactNorms);
  out.put(shard.replicated);
}

void putBytes(const ShardWork &shard, Writer &out) {
  double width = static_cast<double>(shard.width);
  double row = static_cast<double>(rowBytes(shard.width, shard.elementType));
  out.putLog(static_cast<double>(shard.rows) * row);
  out.putLog(shard.lookups * row);
  double unique = std::min(shard.uniqueRows, shard.lookups);
  out.putLog(unique * row);
  out.putLog(static_cast<double>(shard.rows) * (row + stateBytes(shard)));
  out.putLog(unique * (row + stateBytes(shard)));
  out.putLog(shard.outputRows * width *
             static_cast<double>(elementBytes(shard.outputType)));
  out.putLog(shard.updateGradientRows * width * 4 +
             2 * shard.steppedRows() * (row + stateBytes(shard)));
}

} // namespace

OptimizerKind neuroshard::pricedAs(OptimizerKind kind) {
  OptimizerStates states = propertiesOf(kind).states;
  auto closest = std::ranges::min_element(
      kPricedOptimizers, {}, [&](OptimizerKind priced) {
        OptimizerStates known = propertiesOf(priced).states;
        return std::pair(std::abs(known.perElement - states.perElement),
                         std::abs(known.perRow - states.perRow));
      });
  return *closest;
}

std::span<const std::string_view> neuroshard::featureNames() { return kNames; }

void neuroshard::featurize(const ShardWork &shard, std::span<float> out) {
  Writer writer(out);
  putReuse(shard, writer);
  putShape(shard, writer);
  putCounts(shard, writer);
  putTypes(shard, writer);
  putBytes(shard, writer);
}

static bool isLog(int feature) {
  return kNames[static_cast<size_t>(feature)].starts_with("log_");
}

bool neuroshard::countsWork(int feature) {
  constexpr std::array<std::string_view, 7> kWork = {
      "log_lookups",        "log_output_rows",
      "log_update_lookups", "log_update_gradient_rows",
      "log_read_bytes",     "log_result_bytes",
      "log_update_bytes"};
  return std::find(kWork.begin(), kWork.end(),
                   kNames[static_cast<size_t>(feature)]) != kWork.end();
}

std::string neuroshard::featureValueText(int feature, double value) {
  double number = isLog(feature) ? std::expm1(value) : value;
  char text[32];
  bool isShort = std::abs(number) < 1000 || std::abs(number) >= 1e6;
  std::snprintf(text, sizeof text, isShort ? "%.3g" : "%.0f", number);
  return text;
}
