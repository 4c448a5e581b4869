//===- AssignRows.cpp - Rows that begin anew with other ids ---------------===//

#include "RankSession.h"

#include "neuroshard/Runtime/Initializer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// The initial weights of ids in the columns of a shard.
static at::Tensor initialWeights(const TableInitializer &initializer,
                                 std::span<const int64_t> ids,
                                 const Range &cols) {
  at::Tensor weights =
      at::empty({static_cast<int64_t>(ids.size()), cols.size()}, at::kFloat);
  float *to = weights.mutable_data_ptr<float>();
  for (int64_t id : ids)
    for (int64_t column = cols.begin; column < cols.end; ++column)
      *to++ = initializer.value(id, column);
  return weights;
}

void RankSession::assignRows(int64_t table, const at::Tensor &rows,
                             const at::Tensor &ids, int64_t seed) {
  const TableSpec &spec = manifest.tables.at(static_cast<size_t>(table));
  TableInitializer initializer(spec, static_cast<uint64_t>(seed));
  const auto *row = rows.const_data_ptr<int64_t>();
  const auto *id = ids.const_data_ptr<int64_t>();
  settle();
  std::lock_guard one(running);
  for (int32_t i = 0; i < nsrt_device_num_shards(ownDevice); ++i) {
    const ShardSpec &shardSpec =
        manifest.shardOfSlot(static_cast<size_t>(ownRank), i);
    if (shardSpec.table != table)
      continue;
    std::vector<int64_t> rowsHere, idsHere;
    for (int64_t n = 0; n < rows.numel(); ++n)
      if (row[n] >= shardSpec.rows.begin && row[n] < shardSpec.rows.end) {
        rowsHere.push_back(row[n] - shardSpec.rows.begin);
        idsHere.push_back(id[n]);
      }
    if (rowsHere.empty())
      continue;
    std::vector<at::Tensor> values = shard(i);
    at::Tensor local = at::tensor(rowsHere, at::kLong);
    at::Tensor weights = initialWeights(initializer, idsHere, shardSpec.cols);
    local = local.to(values.front().device());
    values.front().index_copy_(0, local, weights.to(values.front().options()));
    for (size_t s = 1; s < values.size(); ++s)
      values[s].index_fill_(
          0, local, initialState(*spec.optimizer, static_cast<int64_t>(s) - 1));
  }
}

} // namespace neuroshard::runtime
