//===- RankSession.h - Runs this rank of a compiled model -------*- C++ -*-===//
//
// A member is one rank of a compiled model: an open world of one device, the
// steps that are under way on it, and what an update needs to know.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_RANKSESSION_H
#define NEUROSHARD_LIB_RUNTIMETORCH_RANKSESSION_H

#include "HostCall.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Runtime/DriverABI.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard::runtime {

/// The ids of one local batch, feature-major.
struct Ids {
  at::Tensor ids;
  at::Tensor offsets; ///< i64 [features * batch + 1].
  std::optional<at::Tensor> weights;
};

class Member {
public:
  /// Opens the device of this rank of the process group of that name; without
  /// a name, the artifact's only device. threads 0: all of the machine's.
  Member(const std::string &directory, const std::string &groupName,
         int64_t threads);
  ~Member();

  /// Puts ids in flight and returns the step's number.
  int64_t start(const Ids &input);
  /// Ends the step that the other ranks start with `text` as this rank's
  /// mistake. For callers that cannot start theirs.
  void refuse(const std::string &text);
  /// The results of all lookups of a step, in the manifest's order.
  std::vector<at::Tensor> wait(int64_t step);
  /// Runs the optimizers on the gradients of a step's results. Returns the
  /// gradients of the sample weights if the artifact computes them.
  std::optional<at::Tensor> update(int64_t step,
                                   const std::vector<at::Tensor> &gradients,
                                   double learningRate);
  /// Ends a step that will have no update. Unknown steps are fine.
  void release(int64_t step) noexcept;

  void initialize(int64_t seed);
  void setGradientScale(double scale);
  /// Updates that have been done.
  int64_t numUpdates() const { return updates; }
  void setNumUpdates(int64_t count) { updates = count; }

  /// The device's shards: weights [rows, cols], then the states of each,
  /// [rows, cols] or [rows], as tensors on the shards' memory.
  std::vector<std::vector<at::Tensor>> shards() const;

  const ExchangeSpec &exchange() const { return manifest.exchanges[0]; }
  nsrt_device *device() const { return ownDevice; }

private:
  struct Step {
    Results state; ///< pending, and once waited for, the context.
    Ids input;     ///< kept: a lone device reads ids in place.
    std::vector<int64_t> resultRows; ///< set once waited for.
    bool waited = false;
  };

  Step takeStep(int64_t number, const char *wanted);
  void keepStep(int64_t number, Step step);
  void releaseHandles(Step &step) noexcept;
  int64_t startChecked(const Ids &input);
  void checkInput(const Ids &input) const;
  void checkGradients(const Step &step,
                      const std::vector<at::Tensor> &gradients) const;
  /// Throws what a failed call is for callers of torch.
  void invoke(HostCall &call, const char *function);

  Manifest manifest;
  std::map<std::string, std::vector<ResultSpec>> results;
  std::unique_ptr<nsrt_world, void (*)(nsrt_world *)> world;
  nsrt_device *ownDevice = nullptr;

  std::mutex mutex; ///< of `steps`: tickets may be freed by other threads.
  std::map<int64_t, Step> steps;
  int64_t nextStep = 0;
  int64_t updates = 0;
};

/// The members of this process by name. find throws for an unknown name.
std::shared_ptr<Member> findMember(const std::string &name);
void addMember(const std::string &name, std::shared_ptr<Member> member);
void removeMember(const std::string &name);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_RANKSESSION_H
