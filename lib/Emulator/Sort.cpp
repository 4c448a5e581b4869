//===- Sort.cpp - Stable sort of positions by key -------------------------===//
//
// The emulator's nsg_sort, with the parameters of the one for GPUs (Sort.cu).
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "Driver/Driver.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

using namespace neuroshard::emulator;

namespace {
/// Depends on n, as the scratch of the GPU's sort does.
size_t getScratchBytes(int64_t n, int32_t keyBytes) {
  return 256 + static_cast<size_t>(n) * static_cast<size_t>(keyBytes);
}

/// Success if all arrays lie in device memory with room for n elements.
CUresult
checkArrays(std::initializer_list<std::pair<const void *, size_t>> arrays) {
  for (auto [array, bytes] : arrays)
    if (bytes > 0 && !isAllocated(array, bytes))
      return loseContext(
          CUDA_ERROR_ILLEGAL_ADDRESS,
          "nsg_sort: " + std::to_string(bytes) +
              " bytes of no allocation: " + describeAddress(array));
  return CUDA_SUCCESS;
}

template <typename Key> struct Sort {
  const Key *keys;
  Key *sortedKeys, *uniqueKeys;
  const int32_t *iota;
  int32_t *order, *starts, *numRuns;
  int64_t n;

  void run(int32_t endBit) const {
    Key mask = endBit < static_cast<int32_t>(8 * sizeof(Key))
                   ? Key((Key(1) << endBit) - 1)
                   : Key(~Key(0));
    std::copy_n(iota, n, order);
    std::stable_sort(order, order + n, [&](int32_t a, int32_t b) {
      return (keys[a] & mask) < (keys[b] & mask);
    });
    // Copy all keys first: uniqueKeys may be the memory of keys.
    for (int64_t i = 0; i < n; ++i)
      sortedKeys[i] = keys[order[i]];
    int32_t runs = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0 && sortedKeys[i] == sortedKeys[i - 1])
        continue;
      uniqueKeys[runs] = sortedKeys[i];
      starts[runs++] = static_cast<int32_t>(i);
    }
    *numRuns = runs;
  }
};

template <typename Key>
void sortKeys(const void *keys, int32_t endBit, const int32_t *iota,
              void *sortedKeys, int32_t *order, void *uniqueKeys,
              int32_t *starts, int32_t *numRuns, int64_t n) {
  Sort<Key>{static_cast<const Key *>(keys),
            static_cast<Key *>(sortedKeys),
            static_cast<Key *>(uniqueKeys),
            iota,
            order,
            starts,
            numRuns,
            n}
      .run(endBit);
}
} // namespace

EMULATOR_EXPORT int nsg_sort(void *temp, size_t *temp_bytes, const void *keys,
                             int32_t key_bytes, int32_t end_bit,
                             const int32_t *iota, void *sorted_keys,
                             int32_t *order, void *unique_keys, int32_t *starts,
                             int32_t *num_runs, int64_t n, void *stream) {
  bool isWide = key_bytes == 8;
  if (!temp_bytes || (!isWide && key_bytes != 4) || n < 0 || n > INT32_MAX ||
      end_bit < 1 || end_bit > 8 * key_bytes)
    return fail(CUDA_ERROR_INVALID_VALUE, "nsg_sort: bad arguments");
  size_t needed = getScratchBytes(n, key_bytes);
  if (!temp) {
    *temp_bytes = needed;
    return CUDA_SUCCESS;
  }
  if (*temp_bytes < needed)
    return fail(CUDA_ERROR_INVALID_VALUE, "nsg_sort: too little scratch");
  Queue queue;
  if (CUresult result = checkCall(static_cast<CUstream>(stream), &queue))
    return result;
  size_t keys_bytes = static_cast<size_t>(n) * static_cast<size_t>(key_bytes),
         index_bytes = static_cast<size_t>(n) * 4;
  if (CUresult result = checkArrays({{temp, *temp_bytes},
                                     {keys, keys_bytes},
                                     {iota, index_bytes},
                                     {sorted_keys, keys_bytes},
                                     {order, index_bytes},
                                     {unique_keys, keys_bytes},
                                     {starts, index_bytes},
                                     {num_runs, 4}}))
    return result;
  auto run = [=, scratch_bytes = *temp_bytes](Accesses *accesses) {
    MemoryUse use(
        {keys, iota, sorted_keys, order, unique_keys, starts, num_runs});
    (isWide ? sortKeys<uint64_t>
            : sortKeys<uint32_t>)(keys, end_bit, iota, sorted_keys, order,
                                  unique_keys, starts, num_runs, n);
    if (accesses) {
      accesses->add(keys, keys_bytes, NSE_READ);
      accesses->add(iota, index_bytes, NSE_READ);
      accesses->add(temp, scratch_bytes, NSE_WRITE);
      accesses->add(sorted_keys, keys_bytes, NSE_WRITE);
      accesses->add(order, index_bytes, NSE_WRITE);
      accesses->add(unique_keys, keys_bytes, NSE_WRITE);
      accesses->add(starts, index_bytes, NSE_WRITE);
      accesses->add(num_runs, 4, NSE_WRITE);
    }
    return CUDA_SUCCESS;
  };
  return submit(queue, {"nsg_sort", run});
}
