//===- ShardTensors.cpp - Shards as tensors on their own memory -----------===//

#include "RankSession.h"

#include "neuroshard/Model/RowLayout.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

namespace neuroshard::runtime {

static at::ScalarType scalarType(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return at::kFloat;
  case ElementType::F16:
    return at::kHalf;
  case ElementType::BF16:
    return at::kBFloat16;
  case ElementType::Int8:
  case ElementType::Int4:
  case ElementType::Fp8:
    return at::kByte;
  }
  return at::kFloat;
}

std::vector<at::Tensor> RankSession::shard(int32_t index) const {
  nsrt_shard_info info;
  TORCH_CHECK(nsrt_device_shard(ownDevice, index, &info) == 0,
              nsrt_last_error());
  int64_t rows = info.row_end - info.row_begin;
  int64_t cols = info.col_end - info.col_begin;
  ElementType type =
      manifest.tables[static_cast<size_t>(info.table)].elementType;
  c10::Device place = info.on_host ? c10::kCPU : placement.place();
  std::vector<at::Tensor> shard;
  auto view = [&](void *values, at::IntArrayRef sizes, int64_t stride,
                  at::ScalarType elements) {
    std::vector<int64_t> strides(sizes.size(), 1);
    strides[0] = stride;
    shard.push_back(at::from_blob(
        values, sizes, strides, [](void *) {},
        at::TensorOptions(elements).device(place), place));
  };
  int64_t values = isQuantized(type) ? rowBytes(cols, type) : cols;
  view(info.weights, {rows, values}, info.weight_stride, scalarType(type));
  for (int32_t s = 0; s < info.num_states; ++s)
    if (s >= info.num_states - info.num_row_states)
      view(info.states[s], {rows}, info.state_stride[s], at::kFloat);
    else
      view(info.states[s], {rows, cols}, info.state_stride[s], at::kFloat);
  return shard;
}

std::vector<std::vector<at::Tensor>> RankSession::shards() const {
  std::vector<std::vector<at::Tensor>> shards;
  for (int32_t i = 0; i < nsrt_device_num_shards(ownDevice); ++i)
    shards.push_back(shard(i));
  return shards;
}

} // namespace neuroshard::runtime
