//===- IdExchange.cpp - Numbers from each rank to each other --------------===//
//
// torch.ops.neuroshard.exchange_numbers, of i64 on the CPU, over a watched
// process group that carries nothing else.
//
//===----------------------------------------------------------------------===//

#include "Group/PeerMessages.h"
#include "Group/WatchedGroup.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/library.h>

#include <cstring>

namespace neuroshard::runtime {

/// `sent` and `taken`: how many values go to each rank, and come from it;
/// those of rank 0 come first. Throws torch's DistBackendError with the group's
/// cause if it ends.
static at::Tensor exchangeNumbers(const std::string &groupName,
                                  const at::Tensor &values,
                                  at::IntArrayRef sent, at::IntArrayRef taken) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(int64_t));
  std::vector<int64_t> sentBytes, takenBytes;
  for (int64_t count : sent)
    sentBytes.push_back(count * kBytes);
  int64_t total = 0;
  for (int64_t count : taken) {
    takenBytes.push_back(count * kBytes);
    total += count;
  }
  at::Tensor received = at::empty({total}, at::kLong);
  std::shared_ptr<GroupWatch> watch = findWatch(groupName);
  watch->countExchange();
  try {
    PeerMessages messages(c10d::resolve_process_group(groupName), watch);
    auto request = messages.exchange(
        MessageKind::Ids,
        values.flatten().view(at::kByte).split_with_sizes(sentBytes),
        takenBytes);
    auto *to = static_cast<char *>(received.mutable_data_ptr());
    for (std::span<const std::byte> piece : request->wait()) {
      if (!piece.empty())
        std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    }
  } catch (const CommunicatorError &error) {
    C10_THROW_ERROR(DistBackendError, error.what());
  } catch (const std::exception &error) {
    watch->endAfterExchange(error.what(), groupName);
    C10_THROW_ERROR(DistBackendError, watch->causeOfEnd());
  }
  return received;
}

} // namespace neuroshard::runtime

TORCH_LIBRARY_FRAGMENT(neuroshard, m) {
  m.def("exchange_numbers(str group, Tensor values, int[] sent, int[] taken) "
        "-> Tensor",
        &neuroshard::runtime::exchangeNumbers);
}
