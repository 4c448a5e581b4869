//===- AssignRows.cpp - Rows that begin anew with other ids ---------------===//

#include "RankSession.h"

#include "neuroshard/Runtime/Initializer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <c10/util/Exception.h>

namespace neuroshard::runtime {

/// The initial weights of ids in the columns of a shard.
static at::Tensor initialWeights(const TableInitializer &initializer,
                                 const at::Tensor &ids, const Range &cols) {
  at::Tensor weights = at::empty({ids.numel(), cols.size()}, at::kFloat);
  const int64_t *id = ids.const_data_ptr<int64_t>();
  float *to = weights.mutable_data_ptr<float>();
  for (int64_t i = 0; i < ids.numel(); ++i)
    for (int64_t column = cols.begin; column < cols.end; ++column)
      *to++ = initializer.value(id[i], column);
  return weights;
}

void RankSession::assignRows(int64_t table, const at::Tensor &rows,
                             const at::Tensor &ids, int64_t seed) {
  const TableSpec &spec = manifest.tables.at(static_cast<size_t>(table));
  TableInitializer initializer(spec, static_cast<uint64_t>(seed));
  settle();
  std::lock_guard one(running);
  for (int32_t i = 0; i < nsrt_device_num_shards(ownDevice); ++i) {
    const ShardSpec &shardSpec =
        manifest.shardOfSlot(static_cast<size_t>(ownRank), i);
    if (shardSpec.table != table)
      continue;
    at::Tensor isHere =
        rows.ge(shardSpec.rows.begin).logical_and(rows.lt(shardSpec.rows.end));
    at::Tensor places = isHere.nonzero().flatten();
    if (places.numel() == 0)
      continue;
    std::vector<at::Tensor> values = shard(i);
    at::Tensor local = rows.index_select(0, places).sub(shardSpec.rows.begin);
    at::Tensor weights = initialWeights(
        initializer, ids.index_select(0, places), shardSpec.cols);
    local = local.to(values.front().device());
    values.front().index_copy_(0, local, weights.to(values.front().options()));
    for (size_t s = 1; s < values.size(); ++s)
      values[s].index_fill_(
          0, local, initialState(*spec.optimizer, static_cast<int64_t>(s) - 1));
  }
}

} // namespace neuroshard::runtime
