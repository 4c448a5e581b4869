//===- FakeKernels.cpp - GPU kernels as scalar loops ----------------------===//
//
// Written from GpuKernelABI.h alone. They compute in f32 and run blocks from
// the last to the first, so that nothing can rely on the order of blocks.
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace fake {
namespace {

int64_t strideOf(int64_t dim) { return (dim + 3) / 4 * 4; }

struct Ids {
  int64_t begin, end;
};

/// Positions in `ids` of an item.
Ids idsOf(const nsg_lookup_task &task, int64_t item) {
  if (!(task.flags & NSG_POOLED))
    return {task.first_id + item, task.first_id + item + 1};
  if (task.flags & NSG_FIXED)
    return {task.first_id + item * task.pooling,
            task.first_id + (item + 1) * task.pooling};
  return {task.offsets[item], task.offsets[item + 1]};
}

/// Row of the slot; bad ids are row 0.
int64_t rowOf(const nsg_lookup_task &task, int64_t position, bool *bad) {
  int64_t id = task.flags & NSG_ID64
                   ? static_cast<const int64_t *>(task.ids)[position]
                   : static_cast<const int32_t *>(task.ids)[position];
  *bad = id < task.row_begin || id >= task.row_begin + task.rows;
  return *bad ? 0 : id - task.row_begin;
}

/// Calls function(task number, item) for all items of a launch. Without
/// `itemsPerBlock` blocks are those of a lookup.
template <typename Function>
void forItems(State &state, const nsg_lookup_task *tasks,
              const int32_t *taskOfBlock, int64_t blocks,
              int32_t nsg_lookup_task::*firstBlock, int64_t itemsPerBlock,
              Function function) {
  for (int64_t block = blocks - 1; block >= 0; --block) {
    int32_t t = taskOfBlock[block];
    const nsg_lookup_task &task = tasks[t];
    int64_t perBlock = itemsPerBlock;
    if (itemsPerBlock == 0)
      perBlock =
          state.lookups[static_cast<size_t>(task.variant)].itemsPerBlock *
          task.items_per_group;
    int64_t begin = (block - task.*firstBlock) * perBlock;
    if (begin < 0 || begin >= task.items)
      state.violations.push_back("a block has no items");
    int64_t end = std::min(task.items, begin + perBlock);
    for (int64_t item = begin; item < end; ++item)
      function(t, item);
  }
}

void checkBody(State &state, const nsg_lookup_task &task) {
  const LookupBody &body = state.lookups[static_cast<size_t>(task.variant)];
  int32_t flags = (body.pooled ? NSG_POOLED : 0) | (body.mean ? NSG_MEAN : 0) |
                  (body.weighted ? NSG_WEIGHTED : 0) |
                  (body.fixed ? NSG_FIXED : 0) |
                  (body.idBytes == 8 ? NSG_ID64 : 0);
  if (task.flags != flags)
    state.violations.push_back("a task runs another body than it needs");
}

void lookUp(State &state, int64_t blocks, const nsg_lookup_task *tasks,
            const int32_t *taskOfBlock, uint64_t *badId) {
  forItems(state, tasks, taskOfBlock, blocks, &nsg_lookup_task::first_block, 0,
           [&](int32_t t, int64_t item) {
             const nsg_lookup_task &task = tasks[t];
             checkBody(state, task);
             int64_t dim = state.lookups[static_cast<size_t>(task.variant)].dim;
             auto *out =
                 static_cast<float *>(task.out) + item * task.out_stride;
             std::fill_n(out, dim, 0.0f);
             Ids ids = idsOf(task, item);
             for (int64_t j = ids.begin; j < ids.end; ++j) {
               bool bad;
               const float *row = static_cast<const float *>(task.weights) +
                                  rowOf(task, j, &bad) * strideOf(dim);
               if (bad)
                 *badId = std::min(*badId, static_cast<uint64_t>(t) << 40 |
                                               static_cast<uint64_t>(j));
               float scale =
                   task.flags & NSG_WEIGHTED ? task.sample_weights[j] : 1.0f;
               for (int64_t c = 0; c < dim; ++c)
                 out[c] += scale * row[c];
             }
             if (task.flags & NSG_MEAN && ids.end > ids.begin)
               for (int64_t c = 0; c < dim; ++c)
                 out[c] /= static_cast<float>(ids.end - ids.begin);
           });
}

void expand(State &state, int64_t blocks, const nsg_lookup_task *tasks,
            const int32_t *taskOfBlock, const nsg_positions *positions) {
  forItems(state, tasks, taskOfBlock, blocks,
           &nsg_lookup_task::first_expand_block, NSG_EXPAND_ITEMS,
           [&](int32_t t, int64_t item) {
             const nsg_lookup_task &task = tasks[t];
             Ids ids = idsOf(task, item);
             for (int64_t j = ids.begin; j < ids.end; ++j) {
               bool bad;
               int64_t key = task.key_begin + rowOf(task, j, &bad);
               int64_t p = task.position_begin + j;
               if (positions->key_bytes == 4)
                 static_cast<uint32_t *>(positions->keys)[p] =
                     static_cast<uint32_t>(key);
               else
                 static_cast<uint64_t *>(positions->keys)[p] =
                     static_cast<uint64_t>(key);
               positions->gradient_offsets[p] =
                   task.gradient_begin + item * task.gradient_stride;
               if (!positions->factors)
                 continue;
               float factor =
                   task.flags & NSG_WEIGHTED ? task.sample_weights[j] : 1.0f;
               if (task.flags & NSG_MEAN)
                 factor /= static_cast<float>(ids.end - ids.begin);
               positions->factors[p] = factor;
             }
           });
}

void weightGradient(State &state, int64_t blocks, const nsg_lookup_task *tasks,
                    const int32_t *taskOfBlock) {
  forItems(state, tasks, taskOfBlock, blocks,
           &nsg_lookup_task::first_gradient_block, 0,
           [&](int32_t t, int64_t item) {
             const nsg_lookup_task &task = tasks[t];
             int64_t dim = state.lookups[static_cast<size_t>(task.variant)].dim;
             const float *gradient = task.gradients + task.gradient_begin +
                                     item * task.gradient_stride;
             Ids ids = idsOf(task, item);
             for (int64_t j = ids.begin; j < ids.end; ++j) {
               bool bad;
               const float *row = static_cast<const float *>(task.weights) +
                                  rowOf(task, j, &bad) * strideOf(dim);
               float dot = std::inner_product(row, row + dim, gradient, 0.0f);
               task.weight_gradient[j] =
                   task.flags & NSG_MEAN
                       ? dot / static_cast<float>(ids.end - ids.begin)
                       : dot;
             }
           });
}

uint64_t keyAt(const nsg_sorted &sorted, int64_t run) {
  return sorted.key_bytes == 4
             ? static_cast<const uint32_t *>(sorted.keys)[run]
             : static_cast<const uint64_t *>(sorted.keys)[run];
}

void findRanges(const nsg_slot *slots, int32_t numSlots,
                const nsg_sorted *sorted) {
  int32_t runs = *sorted->num_runs;
  sorted->starts[runs] = static_cast<int32_t>(sorted->num_positions);
  for (int32_t s = 0; s <= numSlots; ++s) {
    int64_t key = s < numSlots    ? slots[s].key_begin
                  : numSlots == 0 ? 0
                                  : slots[numSlots - 1].key_end;
    int32_t run = 0;
    while (run < runs && keyAt(*sorted, run) < static_cast<uint64_t>(key))
      ++run;
    sorted->run_begin[s] = run;
  }
}

/// The slots of a launch.
struct SlotRange {
  const nsg_slot *slots;
  int32_t first, end;
};

/// Calls function(slot, run, run of the slot, row) for all runs.
template <typename Function>
void forRuns(const SlotRange &range, const nsg_sorted *sorted,
             Function function) {
  const nsg_slot *slots = range.slots;
  for (int32_t s = range.first; s < range.end; ++s)
    for (int32_t run = sorted->run_begin[s]; run < sorted->run_begin[s + 1];
         ++run)
      function(slots[s], run, run - sorted->run_begin[s],
               static_cast<int64_t>(keyAt(*sorted, run)) - slots[s].key_begin);
}

/// Adds gradients of the positions order[begin] ... order[end - 1].
void addGradients(const nsg_sorted &sorted, int64_t begin, int64_t end,
                  int64_t dim, float *sum) {
  for (int64_t i = begin; i < end; ++i) {
    int32_t p = sorted.order[i];
    float factor = sorted.factors ? sorted.factors[p] : sorted.one;
    for (int64_t c = 0; c < dim; ++c)
      sum[c] += factor * sorted.gradients[sorted.gradient_offsets[p] + c];
  }
}

void addChunks(State &state, const nsg_slot *slots, int32_t numSlots,
               const nsg_sorted *sorted) {
  for (int32_t s = 0; s < numSlots; ++s)
    for (int32_t run = sorted->run_begin[s]; run < sorted->run_begin[s + 1];
         ++run) {
      int64_t begin = sorted->starts[run], end = sorted->starts[run + 1];
      int64_t dim =
          state.updates[static_cast<size_t>(slots[s].partial_variant)].dim;
      for (int64_t i = begin; i + NSG_CHUNK <= end; i += NSG_CHUNK) {
        float *sum = sorted->partials + i / NSG_CHUNK * sorted->partial_stride;
        std::fill_n(sum, dim, 0.0f);
        addGradients(*sorted, i, i + NSG_CHUNK, dim, sum);
      }
    }
}

std::vector<float> sumOf(const nsg_sorted &sorted, int32_t run, int64_t dim) {
  std::vector<float> sum(static_cast<size_t>(dim));
  int64_t end = sorted.starts[run + 1];
  int64_t begin = sorted.starts[run];
  int64_t rest = end - (end - begin) % NSG_CHUNK;
  addGradients(sorted, rest, end, dim, sum.data());
  for (int64_t i = begin; i < rest; i += NSG_CHUNK) {
    const float *chunk =
        sorted.partials + i / NSG_CHUNK * sorted.partial_stride;
    for (int64_t c = 0; c < dim; ++c)
      sum[static_cast<size_t>(c)] += chunk[c];
  }
  return sum;
}

void update(const UpdateBody &body, const SlotRange &range,
            const nsg_sorted *sorted) {
  forRuns(range, sorted,
          [&](const nsg_slot &slot, int32_t run, int32_t, int64_t row) {
            int64_t dim = body.dim;
            std::vector<float> sum = sumOf(*sorted, run, dim);
            auto *weights =
                static_cast<float *>(slot.weights) + row * strideOf(dim);
            for (int64_t c = 0; c < dim; ++c)
              weights[c] -= *slot.step_size * sum[static_cast<size_t>(c)];
          });
}

void reduce(const UpdateBody &body, const SlotRange &range,
            const nsg_sorted *sorted) {
  forRuns(range, sorted,
          [&](const nsg_slot &slot, int32_t run, int32_t local, int64_t) {
            int64_t dim = body.dim;
            std::vector<float> sum = sumOf(*sorted, run, dim);
            std::copy(sum.begin(), sum.end(),
                      slot.reduced + local * strideOf(dim));
            slot.norms[local] =
                std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.0f);
          });
}

void apply(const UpdateBody &body, const SlotRange &range,
           const nsg_sorted *sorted) {
  forRuns(range, sorted,
          [&](const nsg_slot &slot, int32_t, int32_t local, int64_t row) {
            slot.state0[row] +=
                slot.norms[local] / static_cast<float>(body.tableDim);
            float scale = *slot.step_size / std::sqrt(slot.state0[row]);
            auto *weights =
                static_cast<float *>(slot.weights) + row * strideOf(body.dim);
            for (int64_t c = 0; c < body.dim; ++c)
              weights[c] -=
                  scale * slot.reduced[local * strideOf(body.dim) + c];
          });
}

template <typename T> T argument(void **arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof(value));
  return value;
}

template <typename Key>
void sortKeys(const Key *keys, int32_t endBit, const int32_t *iota,
              Key *sortedKeys, int32_t *order, Key *uniqueKeys, int32_t *starts,
              int32_t *numRuns, int64_t n) {
  Key mask = endBit >= static_cast<int32_t>(8 * sizeof(Key))
                 ? ~Key(0)
                 : (Key(1) << endBit) - 1;
  std::copy_n(iota, n, order);
  std::stable_sort(order, order + n, [&](int32_t a, int32_t b) {
    return (keys[a] & mask) < (keys[b] & mask);
  });
  for (int64_t i = 0; i < n; ++i)
    sortedKeys[i] = keys[order[i]];
  int32_t runs = 0;
  for (int64_t i = 0; i < n; ++i)
    if (i == 0 || sortedKeys[i] != sortedKeys[i - 1]) {
      uniqueKeys[runs] = sortedKeys[i];
      starts[runs++] = iota[i];
    }
  *numRuns = runs;
}

} // namespace

std::function<void()> makeKernel(State &state, const std::string &name,
                                 int64_t blocks, void **arguments) {
  if (name == "nsg_lookup" || name == "nsg_expand" ||
      name == "nsg_weight_gradient") {
    auto tasks = argument<const nsg_lookup_task *>(arguments, 0);
    auto map = argument<const int32_t *>(arguments, 1);
    if (name == "nsg_weight_gradient")
      return [=, &state] { weightGradient(state, blocks, tasks, map); };
    if (name == "nsg_expand") {
      auto positions = argument<const nsg_positions *>(arguments, 2);
      return [=, &state] { expand(state, blocks, tasks, map, positions); };
    }
    auto bad = argument<uint64_t *>(arguments, 2);
    return [=, &state] { lookUp(state, blocks, tasks, map, bad); };
  }
  auto slots = argument<const nsg_slot *>(arguments, 0);
  if (name == "nsg_ranges" || name == "nsg_partials") {
    auto count = argument<int32_t>(arguments, 1);
    auto sorted = argument<const nsg_sorted *>(arguments, 2);
    if (name == "nsg_ranges")
      return [=] { findRanges(slots, count, sorted); };
    return [=, &state] { addChunks(state, slots, count, sorted); };
  }
  SlotRange range = {slots, argument<int32_t>(arguments, 1),
                     argument<int32_t>(arguments, 2)};
  auto sorted = argument<const nsg_sorted *>(arguments, 3);
  size_t ofBody = name.rfind('_');
  UpdateBody body = state.updates[std::stoul(name.substr(ofBody + 1))];
  std::string kernel = name.substr(0, ofBody);
  if (kernel == "nsg_update")
    return [=] { update(body, range, sorted); };
  if (kernel == "nsg_reduce")
    return [=] { reduce(body, range, sorted); };
  return [=] { apply(body, range, sorted); };
}

void sortPositions(const void *keys, int32_t keyBytes, int32_t endBit,
                   const int32_t *iota, void *sortedKeys, int32_t *order,
                   void *uniqueKeys, int32_t *starts, int32_t *numRuns,
                   int64_t n) {
  if (keyBytes == 4)
    sortKeys(static_cast<const uint32_t *>(keys), endBit, iota,
             static_cast<uint32_t *>(sortedKeys), order,
             static_cast<uint32_t *>(uniqueKeys), starts, numRuns, n);
  else
    sortKeys(static_cast<const uint64_t *>(keys), endBit, iota,
             static_cast<uint64_t *>(sortedKeys), order,
             static_cast<uint64_t *>(uniqueKeys), starts, numRuns, n);
}

} // namespace fake
