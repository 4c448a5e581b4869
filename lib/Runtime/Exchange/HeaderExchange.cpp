//===- HeaderExchange.cpp - Headers of ids between all ranks --------------===//
//
// A message to each rank; or, of many ranks in groups, to the relay in each
// group those for its devices, and from there to each device those of the ranks
// that the relay serves: as ids travel (HierarchicalIds.h).
//
//===----------------------------------------------------------------------===//

#include "HeaderExchange.h"
#include "neuroshard/Artifact/IdHeader.h"

#include <cstring>

namespace neuroshard::runtime {
namespace {

using Numbers = std::vector<int64_t>;

constexpr int64_t kNumberBytes = sizeof(int64_t);

class HeaderExchange {
public:
  HeaderExchange(Device &device, const std::function<void()> &meanwhile)
      : device(device), meanwhile(meanwhile), groups(device.plan->groups),
        own(groups.placeOf(device.rank())), length(device.plan->headerNumbers) {
  }

  std::vector<Numbers> swapDirectly(const Numbers &headers) const {
    Numbers counts(static_cast<size_t>(device.numDevices()), 1);
    return swap(MessageKind::Ids, headers, counts);
  }

  std::vector<Numbers> swapByRelay(const Numbers &headers) const {
    auto ranks = static_cast<size_t>(device.numDevices());
    const std::vector<int32_t> served = groups.devicesWithIndex(own.index);
    const std::vector<int32_t> &inside = groups.group(own.group);
    // To the relay in each group, those for its devices.
    Numbers message, counts(ranks), insideCounts(ranks);
    for (size_t relay = 0; relay < ranks; ++relay)
      if (GroupPlace place = groups.placeOf(static_cast<int64_t>(relay));
          place.index == own.index) {
        counts[relay] = static_cast<int64_t>(inside.size());
        for (int32_t receiver : groups.group(place.group))
          add(headers, static_cast<size_t>(receiver), message);
      }
    std::vector<Numbers> ofServed = swap(MessageKind::Ids, message, counts);
    // To each device of the group, those of the ranks that this relay serves.
    message.clear();
    for (size_t receiver = 0; receiver < ranks; ++receiver)
      if (GroupPlace place = groups.placeOf(static_cast<int64_t>(receiver));
          place.group == own.group) {
        insideCounts[receiver] = static_cast<int64_t>(served.size());
        for (int32_t rank : served)
          add(ofServed[static_cast<size_t>(rank)],
              static_cast<size_t>(place.index), message);
      }
    std::vector<Numbers> ofRelays =
        swap(MessageKind::HeadersSecondHop, message, insideCounts);
    std::vector<Numbers> ofRanks(ranks);
    for (int32_t relay : inside) {
      size_t next = 0;
      for (int32_t rank : groups.devicesWithIndex(groups.placeOf(relay).index))
        add(ofRelays[static_cast<size_t>(relay)], next++,
            ofRanks[static_cast<size_t>(rank)]);
    }
    return ofRanks;
  }

private:
  /// Appends one of several headers.
  void add(const Numbers &headers, size_t index, Numbers &to) const {
    auto first = headers.begin() + static_cast<ptrdiff_t>(index * length);
    to.insert(to.end(), first, first + static_cast<ptrdiff_t>(length));
  }

  /// `counts`: headers to each rank, and as many from it.
  std::vector<Numbers> swap(MessageKind kind, const Numbers &headers,
                            const Numbers &counts) const {
    Numbers bytes;
    for (int64_t count : counts)
      bytes.push_back(count * static_cast<int64_t>(length) * kNumberBytes);
    auto request = device.communicator->startAllToAll(
        kind, MessageMemory::Host,
        onHost(device, headers.data(), headers.size() * sizeof(int64_t)), bytes,
        bytes);
    if (kind == MessageKind::Ids) // the first hop
      meanwhile();
    std::vector<Numbers> received;
    for (const auto &message : request->wait()) {
      Numbers &numbers =
          received.emplace_back(message.size() / sizeof(int64_t));
      if (!message.empty())
        std::memcpy(numbers.data(), message.data(), message.size());
    }
    return received;
  }

  Device &device;
  const std::function<void()> &meanwhile;
  const DeviceGroups &groups;
  GroupPlace own;
  size_t length;
};

} // namespace

Buffer onHost(Device &device, const void *data, size_t bytes) {
  Buffer buffer = device.hostBuffers->acquire(BufferKind::Headers,
                                              static_cast<int64_t>(bytes));
  if (bytes > 0)
    std::memcpy(buffer.get(), data, bytes);
  return buffer;
}

std::vector<Numbers> swapHeaders(Device &device, const Numbers &headers,
                                 const std::function<void()> &meanwhile) {
  HeaderExchange exchange(device, meanwhile);
  return relaysHeaders(device.plan->groups) ? exchange.swapByRelay(headers)
                                            : exchange.swapDirectly(headers);
}

} // namespace neuroshard::runtime
