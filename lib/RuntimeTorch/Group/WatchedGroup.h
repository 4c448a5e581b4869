//===- WatchedGroup.h - A process group under a watch ----------*- C++ -*-===//
//
// Operators for Python on a process group of torch.distributed: a watch that
// tells why the group has ended, and gathers of small values that fail with
// that cause when a rank is gone.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_GROUP_WATCHEDGROUP_H
#define NEUROSHARD_LIB_RUNTIMETORCH_GROUP_WATCHEDGROUP_H

#include "ProcessGroupCommunicator.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace neuroshard::runtime {

class WatchedGroup {
public:
  /// Watches the process group that torch.distributed knows by this name. Keys
  /// in its store begin with `prefix`. `keepsStore`: as in GroupWatch.
  WatchedGroup(const std::string &groupName, const std::string &prefix,
               bool keepsStore, WatchLimits limits);

  /// The gathers use this group of the same ranks. Nothing else may use it.
  void connect(const std::string &groupName);

  /// Returns the number of each rank. Ends the group if ranks call this with
  /// different `kind`s. Throws a CommunicatorError.
  std::vector<int64_t> gatherNumbers(int64_t kind, int64_t number);
  /// Returns the bytes of each rank. Throws a CommunicatorError.
  std::vector<at::Tensor> gatherBytes(int64_t kind, const at::Tensor &bytes);

  const std::shared_ptr<GroupWatch> &watch() { return groupWatch; }

private:
  ProcessGroupCommunicator &connected();

  std::shared_ptr<GroupWatch> groupWatch;
  std::unique_ptr<ProcessGroupCommunicator> communicator;
};

/// The open groups of this process by name. findGroup throws if there is none
/// of that name.
std::shared_ptr<WatchedGroup> findGroup(const std::string &name);
void addGroup(const std::string &name, std::shared_ptr<WatchedGroup> group);
/// Leaves the group in good order.
void closeGroup(const std::string &name);

/// Makes the watch of the open group `name` answer for another process group of
/// the same ranks.
void shareWatch(const std::string &name, const std::string &groupName);
/// The watch of a process group. Throws if it is not watched.
std::shared_ptr<GroupWatch> findWatch(const std::string &groupName);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_GROUP_WATCHEDGROUP_H
