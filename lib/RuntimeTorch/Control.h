//===- Control.h - A watched group, and small values of its ranks -*- C++ -*-=//
//
// What Python needs of a process group beside the exchanges of steps: a watch
// on it, and gathers that end with the group's cause when a rank is gone.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_CONTROL_H
#define NEUROSHARD_LIB_RUNTIMETORCH_CONTROL_H

#include "ProcessGroupCommunicator.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard::runtime {

class Control {
public:
  /// Watches the process group that torch.distributed knows by this name. Keys
  /// in its store begin with `prefix`.
  Control(const std::string &groupName, const std::string &prefix,
          std::chrono::milliseconds silence);

  /// Gathers over this group of the same ranks, which nothing else uses.
  void connect(const std::string &groupName);

  /// The number of each rank. Ranks that gather another `kind` of thing do not
  /// do the same: the group ends. Throws a CommunicatorError.
  std::vector<int64_t> gatherNumbers(int64_t kind, int64_t number);
  /// The bytes of each rank. Throws a CommunicatorError.
  std::vector<at::Tensor> gatherBytes(int64_t kind, const at::Tensor &bytes);

  const std::shared_ptr<GroupWatch> &watch() { return groupWatch; }

private:
  ProcessGroupCommunicator &connected();

  std::shared_ptr<GroupWatch> groupWatch;
  std::unique_ptr<ProcessGroupCommunicator> communicator;
};

/// The open controls of this process by name. find throws for an unknown name.
std::shared_ptr<Control> findControl(const std::string &name);
void addControl(const std::string &name, std::shared_ptr<Control> control);
/// Leaves the group.
void closeControl(const std::string &name);

/// A control's watch counts for this group, too, which is of the same ranks.
void addGroup(const std::string &control, const std::string &groupName);
/// Throws if no control watches the group.
std::shared_ptr<GroupWatch> findWatch(const std::string &groupName);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_CONTROL_H
