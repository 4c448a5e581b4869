//===- AssignRows.cpp - Rows that begin anew with other ids ---------------===//

#include "RankSession.h"

#include "neuroshard/Runtime/Initializer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <span>
#include <vector>

namespace neuroshard::runtime {

static void fillWeights(float *to, const TableInitializer &initializer,
                        int64_t id, const Range &cols) {
  for (int64_t column = cols.begin; column < cols.end; ++column)
    *to++ = initializer.value(id, column);
}

/// The initial weights of ids in the columns of a shard.
static at::Tensor initialWeights(const TableInitializer &initializer,
                                 std::span<const int64_t> ids,
                                 const Range &cols) {
  at::Tensor weights =
      at::empty({static_cast<int64_t>(ids.size()), cols.size()}, at::kFloat);
  float *to = weights.mutable_data_ptr<float>();
  for (int64_t id : ids) {
    fillWeights(to, initializer, id, cols);
    to += cols.size();
  }
  return weights;
}

static bool isFloatOnHost(const at::Tensor &values) {
  return values.is_cpu() && values.scalar_type() == at::kFloat;
}

/// Where a row of a shard begins.
static float *rowOf(const at::Tensor &values, int64_t row) {
  return values.mutable_data_ptr<float>() + row * values.stride(0);
}

/// values[rows[n]] = the initial weights of ids[n]. Rows of f32 in memory of
/// the host are written in place: torch's operators, with what they need made,
/// take longer than the weights.
static void setWeights(const at::Tensor &values,
                       const TableInitializer &initializer,
                       const std::vector<int64_t> &rows,
                       const std::vector<int64_t> &ids, const Range &cols) {
  if (isFloatOnHost(values)) {
    for (size_t n = 0; n < rows.size(); ++n)
      fillWeights(rowOf(values, rows[n]), initializer, ids[n], cols);
    return;
  }
  at::Tensor local = at::tensor(rows, at::kLong).to(values.device());
  values.index_copy_(
      0, local, initialWeights(initializer, ids, cols).to(values.options()));
}

static void setStates(const at::Tensor &values,
                      const std::vector<int64_t> &rows, float value) {
  if (isFloatOnHost(values)) {
    int64_t width = values.dim() == 1 ? 1 : values.size(1);
    for (int64_t row : rows)
      std::fill_n(rowOf(values, row), width, value);
    return;
  }
  values.index_fill_(0, at::tensor(rows, at::kLong).to(values.device()), value);
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
    setWeights(values.front(), initializer, rowsHere, idsHere, shardSpec.cols);
    for (size_t s = 1; s < values.size(); ++s)
      setStates(values[s], rowsHere,
                static_cast<float>(initialState(*spec.optimizer,
                                                static_cast<int64_t>(s) - 1)));
  }
}

} // namespace neuroshard::runtime
