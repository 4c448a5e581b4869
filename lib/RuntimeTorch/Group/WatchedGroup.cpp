//===- WatchedGroup.cpp - A process group under a watch -------------------===//
//
// Numbers travel by all-to-all, so that every rank notices at once when one is
// gone; bytes by all-gather once their sizes are known.
//
//===----------------------------------------------------------------------===//

#include "WatchedGroup.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

namespace neuroshard::runtime {
namespace {

SharedBytes copyBytes(const void *data, size_t size) {
  std::shared_ptr<std::byte[]> copy(new std::byte[std::max<size_t>(size, 1)]);
  if (size > 0)
    std::memcpy(copy.get(), data, size);
  return {copy, copy.get()};
}

} // namespace

WatchedGroup::WatchedGroup(const std::string &groupName,
                           const std::string &prefix, bool keepsStore,
                           WatchLimits limits) {
  auto group = c10d::resolve_process_group(groupName);
  groupWatch =
      std::make_shared<GroupWatch>(group->getStore(), prefix, group->getRank(),
                                   group->getSize(), keepsStore, limits);
}

void WatchedGroup::connect(const std::string &groupName) {
  communicator =
      std::make_unique<ProcessGroupCommunicator>(groupName, groupWatch);
}

ProcessGroupCommunicator &WatchedGroup::connected() {
  if (!communicator)
    throw CommunicatorError("the group is not connected");
  return *communicator;
}

std::vector<int64_t> WatchedGroup::gatherNumbers(int64_t kind, int64_t number) {
  ProcessGroupCommunicator &group = connected();
  using Message = std::array<int64_t, 2>;
  std::vector<Message> sent(static_cast<size_t>(group.size()),
                            Message{kind, number});
  std::vector<int64_t> sizes(sent.size(), sizeof(Message));
  auto request = group.startAllToAll(
      MessageKind::Ids, MessageMemory::Host,
      copyBytes(sent.data(), sent.size() * sizeof(Message)), sizes, sizes);
  std::vector<int64_t> numbers;
  for (const auto &bytes : request->wait()) {
    Message message;
    std::memcpy(&message, bytes.data(), sizeof(message));
    if (message[0] != kind) {
      groupWatch->end(std::string("ranks ")
                          .append(std::to_string(group.rank()))
                          .append(" and ")
                          .append(std::to_string(numbers.size()))
                          .append(" do not call the same functions of "
                                  "neuroshard.distributed in the same order"));
      groupWatch->throwIfEnded();
    }
    numbers.push_back(message[1]);
  }
  return numbers;
}

std::vector<at::Tensor> WatchedGroup::gatherBytes(int64_t kind,
                                                  const at::Tensor &bytes) {
  std::vector<int64_t> sizes = gatherNumbers(kind, bytes.numel());
  auto request = connected().startAllGather(
      MessageKind::Ids, MessageMemory::Host,
      copyBytes(bytes.const_data_ptr(), static_cast<size_t>(bytes.numel())),
      bytes.numel(), sizes);
  std::vector<at::Tensor> gathered;
  for (const auto &piece : request->wait()) {
    gathered.push_back(
        at::empty({static_cast<int64_t>(piece.size())}, at::kByte));
    if (!piece.empty())
      std::memcpy(gathered.back().mutable_data_ptr(), piece.data(),
                  piece.size());
  }
  return gathered;
}

namespace {
struct Groups {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<WatchedGroup>> byName;
  std::map<std::string, std::weak_ptr<GroupWatch>> watchOfGroup;
};

/// Never destroyed: groups that are still open at the end of the process must
/// not be torn down after torch is.
Groups &groups() {
  static auto *all = new Groups;
  return *all;
}

/// Returns what `function` returns. Throws torch's DistBackendError if the
/// group has ended.
template <typename Function> auto orDistError(const Function &function) {
  try {
    return function();
  } catch (const CommunicatorError &error) {
    C10_THROW_ERROR(DistBackendError, error.what());
  }
}

std::chrono::milliseconds milliseconds(double seconds) {
  // So long that nobody waits for it, and short enough to count with.
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::min(seconds, 1e9) * 1000));
}
} // namespace

std::shared_ptr<WatchedGroup> findGroup(const std::string &name) {
  std::lock_guard lock(groups().mutex);
  auto found = groups().byName.find(name);
  TORCH_CHECK_VALUE(found != groups().byName.end(),
                    "there is no watched group named \"", name, "\"");
  return found->second;
}

void addGroup(const std::string &name, std::shared_ptr<WatchedGroup> group) {
  std::lock_guard lock(groups().mutex);
  groups().byName[name] = std::move(group);
}

void closeGroup(const std::string &name) {
  std::shared_ptr<WatchedGroup> group = findGroup(name);
  // Requests that are still referred to keep the watch, but not its thread.
  group->watch()->leave();
  std::lock_guard lock(groups().mutex);
  groups().byName.erase(name);
}

void shareWatch(const std::string &name, const std::string &groupName) {
  auto watch = findGroup(name)->watch();
  std::lock_guard lock(groups().mutex);
  groups().watchOfGroup[groupName] = watch;
}

std::shared_ptr<GroupWatch> findWatch(const std::string &groupName) {
  std::lock_guard lock(groups().mutex);
  auto watch = groups().watchOfGroup[groupName].lock();
  TORCH_CHECK_VALUE(watch, "the process group \"", groupName,
                    "\" is not watched");
  return watch;
}

} // namespace neuroshard::runtime

using namespace neuroshard::runtime;

TORCH_LIBRARY_FRAGMENT(neuroshard, m) {
  m.def("watch(str control, str group, str prefix, bool keeps_store, float "
        "silence, float patience) -> ()",
        [](const std::string &control, const std::string &group,
           const std::string &prefix, bool keepsStore, double silence,
           double patience) {
          WatchLimits limits{milliseconds(silence), milliseconds(patience)};
          orDistError([&] {
            addGroup(control, std::make_shared<WatchedGroup>(
                                  group, prefix, keepsStore, limits));
          });
        });
  m.def("watch_connect(str control, str group) -> ()",
        [](const std::string &control, const std::string &group) {
          findGroup(control)->connect(group);
        });
  m.def("watch_group(str control, str group) -> ()", &shareWatch);
  m.def("unwatch(str control) -> ()", &closeGroup);
  m.def("end_group(str control, str cause) -> ()",
        [](const std::string &control, const std::string &cause) {
          findGroup(control)->watch()->end(cause);
        });
  m.def("end_group_after(str control, str error) -> ()",
        [](const std::string &control, const std::string &error) {
          findGroup(control)->watch()->endAfter(error);
        });
  m.def("cause_of_end(str control) -> str", [](const std::string &control) {
    return findGroup(control)->watch()->causeOfEnd();
  });
  m.def("gather_numbers(str control, int kind, int number) -> int[]",
        [](const std::string &control, int64_t kind, int64_t number) {
          return orDistError(
              [&] { return findGroup(control)->gatherNumbers(kind, number); });
        });
  m.def("gather_bytes(str control, int kind, Tensor bytes) -> Tensor[]",
        [](const std::string &control, int64_t kind, const at::Tensor &bytes) {
          return orDistError(
              [&] { return findGroup(control)->gatherBytes(kind, bytes); });
        });
}
