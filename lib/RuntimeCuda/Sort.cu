//===- Sort.cu - The device-wide sort before an update, by CUB ------------===//
///
/// \file
/// libneuroshard_cuda_sort.so: one function, the CUDA runtime linked
/// statically. It loads on a machine without a driver, where every call returns
/// a cudaError. CMake builds it (cmake/NeuroShardCuda.cmake); any nvcc of
/// CUDA 12 or 13 does as well:
///
///   nvcc -O3 -std=c++20 -shared -cudart static -Xcompiler
///     -fPIC,-fvisibility=hidden -Xlinker --exclude-libs=ALL -arch=native
///     Sort.cu -o libneuroshard_cuda_sort.so
//===----------------------------------------------------------------------===//

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

/// CUB's parts run one after the other, so they share one piece of memory.
template <typename Key>
cudaError_t
sortAndFindRuns(void *temp, std::size_t &tempBytes, const Key *keys, int endBit,
                const std::int32_t *iota, Key *sortedKeys, std::int32_t *order,
                Key *uniqueKeys, std::int32_t *starts, std::int32_t *numRuns,
                std::int32_t n, cudaStream_t stream) {
  std::size_t selectBytes = tempBytes;
  cudaError_t status = cub::DeviceRadixSort::SortPairs(
      temp, tempBytes, keys, sortedKeys, iota, order, n, 0, endBit, stream);
  if (status != cudaSuccess)
    return status;
  // The first of equal neighbours keeps its value, which is its position.
  status =
      cub::DeviceSelect::UniqueByKey(temp, selectBytes, sortedKeys, iota,
                                     uniqueKeys, starts, numRuns, n, stream);
  if (!temp && selectBytes > tempBytes)
    tempBytes = selectBytes;
  return status;
}

} // namespace

/// Sorts positions 0 ... n - 1 stably by key and finds the runs of equal keys.
///
/// Pointers are device memory but for temp_bytes. With temp null, only
/// *temp_bytes is written: what temp must hold for this key_bytes, end_bit and
/// n. All work is put on `stream` (a CUstream), allocates nothing and can be
/// captured into a CUDA graph.
///
/// keys: n of u32 (key_bytes 4) or u64 (8). Only the lowest end_bit bits are
/// compared; keys that agree in them must be equal. iota: int32 0 ... n - 1.
/// sorted_keys: n keys, scratch. Writes order[n], positions by key and then
/// ascending; *num_runs; and per run its key, unique_keys, and the index in
/// `order` of its first position, starts (both with room for n). unique_keys
/// may be the memory of keys, which then are overwritten.
///
/// Returns 0 or a cudaError; 1 (invalid value) for other sizes of keys, an
/// end_bit that a key does not have or positions that an int32 does not hold.
extern "C" __attribute__((visibility("default"))) int
nsg_sort(void *temp, std::size_t *temp_bytes, const void *keys,
         std::int32_t key_bytes, std::int32_t end_bit, const std::int32_t *iota,
         void *sorted_keys, std::int32_t *order, void *unique_keys,
         std::int32_t *starts, std::int32_t *num_runs, std::int64_t n,
         void *stream) {
  if (!temp_bytes || n < 0 || n > std::numeric_limits<std::int32_t>::max() ||
      (key_bytes != 4 && key_bytes != 8) || end_bit < 1 ||
      end_bit > 8 * key_bytes)
    return cudaErrorInvalidValue;
  // CUB looks at the thread's last error after each launch: one that an earlier
  // call has returned already would fail this one, too.
  static_cast<void>(cudaGetLastError());
  auto items = static_cast<std::int32_t>(n);
  auto cudaStream = static_cast<cudaStream_t>(stream);
  if (n == 0 && temp)
    return cudaMemsetAsync(num_runs, 0, sizeof(*num_runs), cudaStream);
  auto run = [&]<typename Key>(Key) {
    return sortAndFindRuns(temp, *temp_bytes, static_cast<const Key *>(keys),
                           end_bit, iota, static_cast<Key *>(sorted_keys),
                           order, static_cast<Key *>(unique_keys), starts,
                           num_runs, items, cudaStream);
  };
  try {
    return key_bytes == 4 ? run(std::uint32_t()) : run(std::uint64_t());
  } catch (...) {
    return cudaErrorUnknown;
  }
}
