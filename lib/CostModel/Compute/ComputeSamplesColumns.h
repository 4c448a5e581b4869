//===- ComputeSamplesColumns.h - Columns of measured compute ----*- C++ -*-===//
///
/// \file
/// The one list of the columns, for both directions.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COSTMODEL_COMPUTE_COMPUTESAMPLESCOLUMNS_H
#define NEUROSHARD_LIB_COSTMODEL_COMPUTE_COMPUTESAMPLESCOLUMNS_H

#include "neuroshard/Planner/CostModel.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace neuroshard::compute_samples {

inline constexpr std::string_view kSchema = "neuroshard.compute_samples.v1";

/// Calls visit(name, stored type's zero, member) for each column of a shard.
/// Counts of ids and rows are expected values, which f32 holds to 1e-7.
template <typename Visit> void forEachShardField(Visit visit) {
  visit("shard.table", int32_t(), &ShardWork::table);
  visit("shard.rows", int64_t(), &ShardWork::rows);
  visit("shard.width", int32_t(), &ShardWork::width);
  visit("shard.table_rows", int64_t(), &ShardWork::tableRows);
  visit("shard.table_dim", int32_t(), &ShardWork::tableDim);
  visit("shard.element_type", uint8_t(), &ShardWork::elementType);
  visit("shard.output_type", uint8_t(), &ShardWork::outputType);
  visit("shard.optimizer", uint8_t(), &ShardWork::optimizer);
  visit("shard.pooling", float(), &ShardWork::pooling);
  visit("shard.features", int32_t(), &ShardWork::features);
  visit("shard.lookups", float(), &ShardWork::lookups);
  visit("shard.output_rows", float(), &ShardWork::outputRows);
  visit("shard.unique_rows", float(), &ShardWork::uniqueRows);
  visit("shard.update_lookups", float(), &ShardWork::updateLookups);
  visit("shard.update_gradient_rows", float(), &ShardWork::updateGradientRows);
  visit("shard.update_unique_rows", float(), &ShardWork::updateUniqueRows);
  visit("shard.id_bytes", uint8_t(), &ShardWork::idBytes);
  visit("shard.weighted", uint8_t(), &ShardWork::weighted);
  visit("shard.row_split", uint8_t(), &ShardWork::rowSplit);
  visit("shard.column_split", uint8_t(), &ShardWork::columnSplit);
  visit("shard.replicated", uint8_t(), &ShardWork::replicated);
  visit("shard.exact_norms", uint8_t(), &ShardWork::exactNorms);
  visit("shard.dims", float(), &ShardWork::dims);
  visit("shard.input_bytes", float(), &ShardWork::inputBytes);
  visit("shard.forward_bytes", float(), &ShardWork::forwardBytes);
  visit("shard.backward_bytes", float(), &ShardWork::backwardBytes);
}

/// The same for the columns of a sample.
template <typename Visit> void forEachSampleField(Visit visit) {
  auto forward = [](auto &s) -> auto & { return s.measured.forwardMs; };
  auto backward = [](auto &s) -> auto & { return s.measured.backwardMs; };
  visit("sample.batch", int64_t(), [](auto &s) -> auto & { return s.batch; });
  visit("sample.forward_ms", double(), forward);
  visit("sample.backward_ms", double(), backward);
  visit("sample.spread", float(), [](auto &s) -> auto & { return s.spread; });
  visit("sample.reference_before_ms", double(),
        [](auto &s) -> auto & { return s.referenceBeforeMs; });
  visit("sample.reference_after_ms", double(),
        [](auto &s) -> auto & { return s.referenceAfterMs; });
  visit("sample.set", int32_t(), [](auto &s) -> auto & { return s.set; });
  visit("sample.repeat_of", int32_t(),
        [](auto &s) -> auto & { return s.repeatOf; });
  visit("sample.held_out", uint8_t(),
        [](auto &s) -> auto & { return s.heldOut; });
  visit("sample.time", int64_t(), [](auto &s) -> auto & { return s.time; });
}

/// A sample's place in messages.
inline std::string sampleName(size_t index) {
  return "samples[" + std::to_string(index) + "]";
}

} // namespace neuroshard::compute_samples

#endif // NEUROSHARD_LIB_COSTMODEL_COMPUTE_COMPUTESAMPLESCOLUMNS_H
