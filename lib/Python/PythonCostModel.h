//===- PythonCostModel.h - A user's own cost model --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PYTHON_PYTHONCOSTMODEL_H
#define NEUROSHARD_LIB_PYTHON_PYTHONCOSTMODEL_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/CostModel.h"

#include <nanobind/nanobind.h>

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace neuroshard::python {

/// A ShardWork that may outlive the search: `work.access` is null, and the
/// histogram is a copy.
struct OwnedShardWork {
  ShardWork work;
  std::shared_ptr<const ShardingProblem> problem;
  std::optional<std::array<double, kReuseBins>> reuse;
  int64_t reuseBatch = 0;
};

/// One device's shards as compute_ms() sees them.
struct PythonShardSet {
  const DeviceClass *deviceClass = nullptr;
  nanobind::list shards;
};

/// Asks a Python object with compute_ms() and communication_ms(). Takes the
/// GIL for each question, one at a time, so any thread may ask. An exception
/// cannot pass through a search: the first one is kept, every later answer is a
/// dummy, and whoever runs the search calls rethrow() after it.
class PythonCostModel final : public CostModel {
public:
  /// Asks the model once, for the first table alone, to see whether it
  /// separates forward and backward. `topology` is the Python object that
  /// traffic.topology shows. `origin` says where a model comes from that the
  /// caller knows by name alone; what it raises then becomes a CostModelError
  /// with this text. Empty: exceptions come out as they are. The GIL must be
  /// held; raises what the model does.
  PythonCostModel(nanobind::object model, std::string name, bool monotone,
                  std::string origin, nanobind::object topology,
                  std::shared_ptr<const ShardingProblem> problem);

  std::string name() const override { return modelName; }
  bool separatesBackward() const override { return separates; }
  bool monotone() const override { return isMonotone; }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override;
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override;

  bool failed() const { return hasFailed; }
  /// Raises the exception that was kept, if any. The GIL must be held.
  void rethrow() const;

private:
  nanobind::list timesOf(std::span<const ShardSet> sets) const;
  nanobind::list listOf(nanobind::handle answer, size_t expected,
                        const std::string &what, const std::string &each) const;
  void askCompute(std::span<const ShardSet> sets,
                  std::span<ComputeMs> out) const;
  std::vector<double> askCommunication(const Traffic &traffic,
                                       std::span<const double> startSkewsMs,
                                       Direction direction) const;
  ComputeMs readTime(nanobind::handle item, size_t index) const;
  double readNumber(nanobind::handle item, const std::string &what) const;
  nanobind::object wrap(const ShardSet &set) const;
  bool probe() const;
  template <typename Question> void oneAtATime(const Question &question) const;
  template <typename Question> void blame(const Question &question) const;

  nanobind::object model, topology;
  std::shared_ptr<const ShardingProblem> problem;
  std::string modelName, origin;
  bool isMonotone = false;
  /// Unset while probing.
  std::optional<bool> form;
  bool separates = true;
  mutable std::atomic<bool> hasFailed = false;
  mutable std::mutex asking;
  /// Written once, with the lock held.
  mutable std::exception_ptr error;
};

} // namespace neuroshard::python

#endif // NEUROSHARD_LIB_PYTHON_PYTHONCOSTMODEL_H
