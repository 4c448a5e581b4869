//===- RankSession.h - Runs one rank of a compiled model --------*- C++ -*-===//
//
// The session of a rank: a world of one device, the steps under way on it, and
// the number of updates done.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_RANKSESSION_H
#define NEUROSHARD_LIB_RUNTIMETORCH_RANKSESSION_H

#include "HostCall.h"
#include "OwnedMutex.h"
#include "Placement.h"
#include "StepInputs.h"
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

/// How the gradients of a step become an update.
struct UpdateSettings {
  /// One for all tables, or one for each; a negative one: the table is frozen.
  std::vector<double> learningRates;
  /// Of gradients, before they travel.
  double gradientScale = 1;
  /// Whether a later update applies them.
  bool keeps = false;
  /// Whether the ranks agree on dropping them all if some value of some rank is
  /// not finite.
  bool checksFinite = false;
};

class RankSession {
public:
  /// Opens the device of this process's rank in the first of the named process
  /// groups; without one, the artifact's only device. A second one is that of
  /// second hops (ProcessGroupCommunicator). `device`: as in Placement. 0
  /// threads: as many as the machine has. With late checks settle() tells of
  /// wrong ids, where a device can. `tierDirectory`: as in Open.h.
  RankSession(const std::string &directory,
              const std::vector<std::string> &groups, const std::string &device,
              int64_t threads, IdCheck check, const std::string &tierDirectory);
  ~RankSession();

  /// Puts ids (StepInputs.h) in flight and returns the step's number.
  int64_t start(const std::vector<at::Tensor> &inputs);
  /// Fails the step that the other ranks start, with `text` as the cause. For
  /// callers that cannot start theirs.
  void refuse(const std::string &text);
  /// Says what the next start is for; ranks that say other numbers are told.
  void notePurpose(int64_t purpose);
  /// Waits for the ids of a step, looks its rows up and starts to send them;
  /// before, those of earlier steps. Later calls do nothing.
  void lookUp(int64_t step);
  /// The results of all lookups of a step, in the manifest's order; or one
  /// tensor with the columns of all (kJoinedWaitName).
  std::vector<at::Tensor> wait(int64_t step, bool joined);
  /// Starts to send the gradients of a step's results, as wait gave these.
  /// Returns the gradients of the sample weights of each weighted input, for
  /// which it waits.
  std::vector<at::Tensor> sendGradients(int64_t step, at::TensorList gradients,
                                        UpdateSettings settings);
  /// Whether the gradients of a step were finite, if that is checked.
  std::optional<bool> hasFiniteGradients(int64_t step);
  /// Waits for the gradients of a step and, unless they are kept, runs the
  /// optimizers on them and those that were.
  void update(int64_t step);
  /// Runs the optimizers on kept gradients, if there are any.
  void updateKept(const std::vector<double> &learningRates);
  /// Averages copies that drift; called on all ranks.
  void averageCopies();
  /// The sum of the squares of all kept gradients, each row's added up, of the
  /// shards of which this rank has the first copy, as f64. No others can be
  /// kept until they are applied or dropped.
  double squaredNorm();
  /// Multiplies the gradients whose norm was taken.
  void scaleKept(double scale);
  /// The tables whose gradients do not travel in steps that start from now on;
  /// the same on all ranks.
  void freeze(const std::vector<int64_t> &tables);
  /// Drops them, and with `step` those of the step, for which it waits.
  void dropGradients(std::optional<int64_t> step);
  /// Drops a step that will have no update. Unknown steps are ignored. What
  /// other ranks need of it is still sent, before the results of later steps.
  void release(int64_t step) noexcept;

  /// To be called before each replay of a CUDA graph that updates: counts the
  /// update and sets its step size.
  void advance(const std::vector<double> &learningRates);
  /// Waits until weights may be read and written. Throws a ValueError if ids
  /// that were checked late were wrong.
  void settle();
  /// Throws a ValueError if a step is not over: its ids are under way, its
  /// results were not taken, or its backward can still come.
  void requireIdle();

  void initialize(int64_t seed);
  /// Begins rows of a table anew, on the shards here that have them: weights
  /// are the initial values that TableInitializer has for `ids`, in place of
  /// rows, and states are their initial values. `rows`: each once.
  void assignRows(int64_t table, const at::Tensor &rows, const at::Tensor &ids,
                  int64_t seed);
  /// Steps that still read or update rows.
  std::vector<int64_t> openSteps();
  /// Whether gradients wait for a later update.
  bool keepsGradients();
  /// Updates done so far.
  int64_t numUpdates() const { return updates; }
  void setNumUpdates(int64_t count) { updates = count; }

  /// Views of the device's shards: of each, its weights [rows, cols], then its
  /// states, [rows, cols] or [rows].
  std::vector<std::vector<at::Tensor>> shards() const;
  std::vector<at::Tensor> shard(int32_t index) const;

  nsrt_device *device() const { return ownDevice; }

private:
  struct Step {
    Results state; ///< handles: of the last of its functions.
    /// As functions read them, and gradients. Kept alive: a single device reads
    /// both in place.
    std::vector<at::Tensor> inputs;
    std::vector<int64_t> resultRows; ///< set once waited for.
    UpdateSettings settings;         ///< set once its gradients are sent.
    std::vector<int64_t> frozen;     ///< tables when it started.
    bool isFinite = true;
    bool lookedUp = false;
    const char *waitedBy = nullptr; ///< function that gave its results.
    bool sent = false;              ///< its gradients.
    bool dropped = false;
  };

  /// Takes the first step before `end` that is not looked up.
  std::optional<Step> takeOwed(int64_t end);
  void lookUpEarlier(int64_t end);
  /// One more than the last step that was dropped and not looked up; 0 if there
  /// is none.
  int64_t endOfDropped();
  Step takeStep(int64_t number, const char *wanted);
  void keepStep(int64_t number, Step step);
  void releaseHandles(Step &step) noexcept;
  void markDropped(int64_t number) noexcept;
  /// Of steps that were dropped and looked up. Holds `running`.
  void releaseDropped() noexcept;
  /// Whether a step has sent its gradients and was not updated.
  bool hasLostUpdate();
  void requireNoLostUpdate();
  void setGradientScale(double scale);
  void setRates(const std::vector<double> &learningRates);
  /// Runs the update function of a step, which keeps its gradients or updates.
  void runUpdate(Step &step, bool keeps);
  int64_t startChecked(const std::vector<at::Tensor> &inputs);
  void lookUp(Step &step);
  void checkGradients(const Step &step, at::TensorList gradients) const;
  at::Tensor readable(const at::Tensor &gradient) const;
  at::Tensor take(Results &returned, size_t index) const;
  /// For a status that is not 0 throws a DistBackendError if the group has
  /// ended, else a ValueError.
  void check(int32_t status) const;
  void invoke(HostCall &call, const char *function);
  /// Runs a function that takes the state of a step. What it returns after
  /// `numTensors` tensors is the state from then on; if it fails, that is
  /// released.
  void runOn(Step &step, HostCall &call, const char *function,
             Results &returned, size_t numTensors);

  Placement placement;
  Manifest manifest;
  StepInputs stepInputs;
  std::map<std::string, std::vector<ResultSpec>> results;
  std::vector<int64_t> dims; ///< columns of each result.
  std::unique_ptr<nsrt_world, void (*)(nsrt_world *)> world;
  nsrt_device *ownDevice = nullptr;
  int32_t ownRank = -1;

  /// A device runs the functions of one thread at a time.
  OwnedMutex running;
  std::mutex mutex; ///< guards these four: other threads may free tickets.
  std::map<int64_t, Step> steps;
  int64_t owed = -1; ///< step that lookUpEarlier has taken.
  bool droppedOwed = false;
  bool lostUpdate = false; ///< a step was dropped after it sent gradients.
  /// What kept gradients lie in: a single device reads them in place.
  std::vector<at::Tensor> keptTensors;
  std::vector<int64_t> keptFrozen; ///< tables, when their steps started.
  std::vector<int64_t> frozen;     ///< tables, of the next steps.
  /// Tables, when an update was captured.
  std::optional<std::vector<bool>> capturedFrozen;
  int64_t updates = 0;
  const int process; ///< that opened the device.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_RANKSESSION_H
