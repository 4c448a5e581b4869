//===- ShardMemory.cpp - Weights and state of one shard on a GPU ----------===//
//
// Copies of rows pass through a chunk of host memory that has their padding.
//
//===----------------------------------------------------------------------===//

#include "ShardMemory.h"
#include "Driver/Status.h"
#include "neuroshard/Runtime/Initializer.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/Runtime/Numerics.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace neuroshard::runtime;

namespace neuroshard::cuda {
namespace {

constexpr int64_t kChunkBytes = int64_t{16} << 20;

/// The rows of an array: padded on the GPU, dense on the host.
struct Rows {
  CUdeviceptr address; ///< of row 0.
  int64_t stride;      ///< bytes on the GPU.
  int64_t width;       ///< bytes on the host.

  int64_t perChunk() const {
    return std::max<int64_t>(1, kChunkBytes / stride);
  }
  CUdeviceptr at(int64_t row) const {
    return address + static_cast<CUdeviceptr>(row * stride);
  }
};

void readRows(const Gpu &gpu, const Rows &rows, int64_t begin, int64_t end,
              void *values) {
  gpu.waitForAll();
  auto *to = static_cast<std::byte *>(values);
  std::vector<std::byte> chunk;
  for (int64_t row = begin; row < end; row += rows.perChunk()) {
    int64_t count = std::min(rows.perChunk(), end - row);
    chunk.resize(static_cast<size_t>(count * rows.stride));
    gpu.driver.check(
        gpu.driver.memcpyDtoH(chunk.data(), rows.at(row), chunk.size()),
        "copying rows from the GPU");
    for (int64_t i = 0; i < count; ++i, to += rows.width)
      std::memcpy(to, chunk.data() + i * rows.stride,
                  static_cast<size_t>(rows.width));
  }
}

void writeChunk(const Gpu &gpu, const Rows &rows, int64_t row,
                const std::vector<std::byte> &chunk) {
  gpu.driver.check(
      gpu.driver.memcpyHtoD(rows.at(row), chunk.data(), chunk.size()),
      "copying rows to the GPU");
}

void writeRows(const Gpu &gpu, const Rows &rows, int64_t begin, int64_t end,
               const void *values) {
  gpu.waitForAll();
  const auto *from = static_cast<const std::byte *>(values);
  std::vector<std::byte> chunk;
  for (int64_t row = begin; row < end; row += rows.perChunk()) {
    int64_t count = std::min(rows.perChunk(), end - row);
    chunk.assign(static_cast<size_t>(count * rows.stride), std::byte(0));
    for (int64_t i = 0; i < count; ++i, from += rows.width)
      std::memcpy(chunk.data() + i * rows.stride, from,
                  static_cast<size_t>(rows.width));
    writeChunk(gpu, rows, row, chunk);
  }
  gpu.waitForAll(); // a copy from pageable memory may return early
}

Rows weightRows(const ShardMemory &memory, CUdeviceptr address) {
  return {address, memory.weightStrideBytes(),
          memory.shard().cols.size() *
              elementBytes(memory.table().elementType)};
}

Rows stateRows(const ShardMemory &memory, int state, CUdeviceptr address) {
  constexpr int64_t kFloatBytes = sizeof(float);
  return {address, memory.stateStride(state) * kFloatBytes,
          memory.stateWidth(state) * kFloatBytes};
}

std::string describe(const TableSpec &table, const ShardSpec &shard) {
  std::ostringstream text;
  text << "table \"" << table.name << "\" rows [" << shard.rows.begin << ", "
       << shard.rows.end << ") cols [" << shard.cols.begin << ", "
       << shard.cols.end << ")";
  return text.str();
}

} // namespace

ShardMemory::ShardMemory(const Gpu &gpu, const ShardSpec &shard,
                         const TableSpec &table, const nsc_slot_memory *given)
    : gpu(gpu), shardSpec(&shard), tableSpec(&table) {
  if (given)
    take(*given);
  else
    allocate();
}

void ShardMemory::take(const nsc_slot_memory &given) {
  const std::array<std::pair<const char *, const void *>, kMaxStates + 1>
      arrays = {{{"weights", given.weights},
                 {"state0", given.state0},
                 {"state1", given.state1},
                 {"state2", given.state2}}};
  for (size_t i = 0; i < arrays.size(); ++i) {
    bool needed = static_cast<int>(i) <= numStates();
    auto [name, array] = arrays[i];
    if (needed != (array != nullptr))
      fail(name, " of ", describe(*tableSpec, *shardSpec), ": expected ",
           needed ? "memory" : "null, as the optimizer does not have it",
           ", found ", needed ? "null" : "memory");
    if (reinterpret_cast<uintptr_t>(array) % 16 != 0)
      fail(name, " of ", describe(*tableSpec, *shardSpec),
           ": expected an address that is a multiple of 16, found ", array);
  }
  weightAddress = reinterpret_cast<CUdeviceptr>(given.weights);
  stateAddress = {reinterpret_cast<CUdeviceptr>(given.state0),
                  reinterpret_cast<CUdeviceptr>(given.state1),
                  reinterpret_cast<CUdeviceptr>(given.state2)};
}

void ShardMemory::allocate() {
  std::string name = describe(*tableSpec, *shardSpec);
  if (shardSpec->hasRowCache())
    fail(name, " are in tier ", toString(shardSpec->tier),
         ", whose rows a world brings (nsrt_world_open_on); nsc_open runs "
         "shards in device memory");
  blocks[0] = DeviceBlock(gpu, weightBytes(), "weights of " + name);
  weightAddress = blocks[0].address();
  for (int i = 0; i < numStates(); ++i) {
    blocks[static_cast<size_t>(i) + 1] =
        DeviceBlock(gpu, stateBytes(i), "optimizer state of " + name);
    stateAddress[static_cast<size_t>(i)] =
        blocks[static_cast<size_t>(i) + 1].address();
  }
  gpu.driver.check(gpu.driver.memsetD8Async(weightAddress, 0,
                                            static_cast<size_t>(weightBytes()),
                                            {}),
                   "clearing weights");
  resetState();
}

int ShardMemory::numStates() const { return tableSpec->states().count(); }

int64_t ShardMemory::weightStrideBytes() const {
  int64_t bytes = elementBytes(tableSpec->elementType);
  return nsrt_row_stride(shardSpec->cols.size(), bytes) * bytes;
}

int64_t ShardMemory::stateWidth(int state) const {
  return tableSpec->states().isPerRow(state) ? 1 : shardSpec->cols.size();
}

int64_t ShardMemory::stateStride(int state) const {
  return tableSpec->states().isPerRow(state)
             ? 1
             : nsrt_row_stride(shardSpec->cols.size(), sizeof(float));
}

int64_t ShardMemory::weightBytes() const {
  return shardSpec->rows.size() * weightStrideBytes();
}

int64_t ShardMemory::stateBytes(int state) const {
  return shardSpec->rows.size() * stateStride(state) *
         static_cast<int64_t>(sizeof(float));
}

void ShardMemory::resetState() {
  if (!tableSpec->trained())
    return;
  for (int i = 0; i < numStates(); ++i) {
    auto value = static_cast<float>(initialState(*tableSpec->optimizer, i));
    gpu.driver.check(gpu.driver.memsetD32Async(
                         stateAddress[static_cast<size_t>(i)],
                         std::bit_cast<uint32_t>(value),
                         static_cast<size_t>(stateBytes(i)) / sizeof(float),
                         {}),
                     "filling optimizer state");
  }
  gpu.waitForAll();
}

void ShardMemory::initialize(uint64_t seed, ThreadPool &threads) {
  constexpr int64_t kRowsPerTask = 256;
  TableInitializer initializer(*tableSpec, seed);
  Rows rows = weightRows(*this, weightAddress);
  int64_t dim = shardSpec->cols.size();
  int64_t numRows = shardSpec->rows.size();
  std::vector<std::byte> chunk;
  gpu.waitForAll();
  for (int64_t first = 0; first < numRows; first += rows.perChunk()) {
    int64_t count = std::min(rows.perChunk(), numRows - first);
    chunk.assign(static_cast<size_t>(count * rows.stride), std::byte(0));
    int64_t tasks = ceilDivide(count, kRowsPerTask);
    threads.parallelFor(tasks, [&](int64_t task) {
      std::vector<float> row(static_cast<size_t>(dim));
      int64_t end = std::min(count, (task + 1) * kRowsPerTask);
      for (int64_t r = task * kRowsPerTask; r < end; ++r) {
        for (int64_t c = 0; c < dim; ++c)
          row[static_cast<size_t>(c)] = initializer.value(
              shardSpec->rows.begin + first + r, shardSpec->cols.begin + c);
        storeElements(row.data(), dim, tableSpec->elementType,
                      chunk.data() + r * rows.stride);
      }
    });
    writeChunk(gpu, rows, first, chunk);
  }
  resetState();
}

void ShardMemory::checkRows(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > shardSpec->rows.size())
    fail("rows [", begin, ", ", end, ") of a shard with ",
         shardSpec->rows.size(), " rows (", describe(*tableSpec, *shardSpec),
         "); rows count from the shard's first");
}

CUdeviceptr ShardMemory::checkedState(int32_t state, int64_t begin,
                                      int64_t end) const {
  checkRows(begin, end);
  if (state < 0 || state >= numStates())
    fail("there is no optimizer state ", state, " of table \"", tableSpec->name,
         "\"; it has ", numStates());
  return stateAddress[static_cast<size_t>(state)];
}

void ShardMemory::readWeights(int64_t begin, int64_t end, void *values) const {
  checkRows(begin, end);
  readRows(gpu, weightRows(*this, weightAddress), begin, end, values);
}

void ShardMemory::writeWeights(int64_t begin, int64_t end, const void *values) {
  checkRows(begin, end);
  writeRows(gpu, weightRows(*this, weightAddress), begin, end, values);
}

void ShardMemory::readState(int32_t state, int64_t begin, int64_t end,
                            float *values) const {
  CUdeviceptr address = checkedState(state, begin, end);
  readRows(gpu, stateRows(*this, state, address), begin, end, values);
}

void ShardMemory::writeState(int32_t state, int64_t begin, int64_t end,
                             const float *values) {
  CUdeviceptr address = checkedState(state, begin, end);
  writeRows(gpu, stateRows(*this, state, address), begin, end, values);
}

} // namespace neuroshard::cuda
