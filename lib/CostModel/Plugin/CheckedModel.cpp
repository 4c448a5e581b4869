//===- CheckedModel.cpp - Checks what a model of others answers -----------===//

#include "CheckedModel.h"

#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <utility>

using namespace neuroshard;

namespace {

/// The answer in place of a failed model's. Not 0: the search goes on for a
/// while and may divide by it.
constexpr double kDummyMs = 1;

/// Larger times, of more than 30000 years, are refused: their sums lose digits.
constexpr double kMaxMs = 1e15;

constexpr double kUnwritten = std::numeric_limits<double>::quiet_NaN();

std::string indexed(const char *what, size_t index) {
  std::string text = what;
  return text.append(": time[").append(std::to_string(index)).append("]");
}

/// The first error of a model. All may be called from several threads.
class FirstError {
public:
  explicit FirstError(std::string name) : name(std::move(name)) {}

  void say(const std::string &what) {
    std::lock_guard<std::mutex> lock(mutex);
    if (text.empty())
      text = "'" + name + "': " + what;
    isSet = true;
  }

  bool isSaid() const { return isSet; }

  std::optional<std::string> get() const {
    if (!isSet)
      return std::nullopt;
    std::lock_guard<std::mutex> lock(mutex);
    return text;
  }

  /// Calls `ask`, unless there is an error. False if there is one after it.
  template <typename Ask> bool guard(const char *what, const Ask &ask) {
    if (isSet)
      return false;
    try {
      ask();
    } catch (const std::exception &error) {
      say(std::string(what) + " threw: " + error.what());
    } catch (...) {
      say(std::string(what) + " threw");
    }
    return !isSet;
  }

  void checkTime(double ms, const std::string &what) {
    if (std::isnan(ms))
      say(what + ": expected a finite number of milliseconds, at least 0, got "
                 "none, or nan");
    else if (!std::isfinite(ms) || ms < 0)
      say(what +
          ": expected a finite number of milliseconds, at least 0, got: " +
          shortestText(ms));
    else if (ms > kMaxMs)
      say(what +
          ": expected at most 1e15 milliseconds, got: " + shortestText(ms));
  }

  void checkTimes(std::span<const ComputeMs> times, const char *what) {
    for (size_t i = 0; i < times.size(); ++i) {
      if (!(times[i].forwardMs >= 0 && times[i].forwardMs <= kMaxMs))
        checkTime(times[i].forwardMs, indexed(what, i) + " forward");
      if (!(times[i].backwardMs >= 0 && times[i].backwardMs <= kMaxMs))
        checkTime(times[i].backwardMs, indexed(what, i) + " backward");
    }
  }

private:
  std::string name, text;
  mutable std::mutex mutex;
  std::atomic<bool> isSet = false;
};

class CheckedEmbedding final : public SumEmbedding {
public:
  CheckedEmbedding(const SumEmbedding &inner, FirstError &error)
      : inner(inner), error(error), width(inner.size()) {
    if (width < 1)
      error.say("sumEmbedding: expected a size of at least 1, got: " +
                std::to_string(width));
  }

  int size() const override { return std::max(width, 1); }
  void embed(const ShardWork &shard, const DeviceClass &deviceClass,
             std::span<double> out) const override {
    std::ranges::fill(out, kUnwritten);
    bool isRight = error.guard("embed", [&] {
      inner.embed(shard, deviceClass, out);
      for (size_t i = 0; i < out.size(); ++i)
        if (!std::isfinite(out[i]))
          error.say("embed: number " + std::to_string(i) + " of " +
                    std::to_string(out.size()) +
                    ": expected a finite number, got none, or " +
                    shortestText(out[i]));
    });
    if (!isRight)
      std::ranges::fill(out, kDummyMs);
  }
  ComputeMs head(std::span<const double> sum, int shardCount,
                 const DeviceClass &deviceClass) const override {
    ComputeMs ms{kUnwritten, kUnwritten};
    bool isRight = error.guard("head", [&] {
      ms = inner.head(sum, shardCount, deviceClass);
      error.checkTimes({&ms, 1}, "head");
    });
    return isRight ? ms : ComputeMs{kDummyMs, kDummyMs};
  }
  void heads(std::span<const double> sums, std::span<const int> shardCounts,
             const DeviceClass &deviceClass,
             std::span<ComputeMs> out) const override {
    std::ranges::fill(out, ComputeMs{kUnwritten, kUnwritten});
    bool isRight = error.guard("heads", [&] {
      inner.heads(sums, shardCounts, deviceClass, out);
      error.checkTimes(out, "heads");
    });
    if (!isRight)
      std::ranges::fill(out, ComputeMs{kDummyMs, kDummyMs});
  }

private:
  const SumEmbedding &inner;
  FirstError &error;
  int width;
};

class CheckedModel final : public CostModel {
public:
  CheckedModel(std::unique_ptr<CostModel> given, std::string name)
      : model(std::move(given)), ownName(std::move(name)), error(ownName) {
    error.checkTime(model->fixedStepMs(), "fixedStepMs");
    if (const SumEmbedding *sums = model->sumEmbedding())
      embedding = std::make_unique<CheckedEmbedding>(*sums, error);
  }

  std::string name() const override { return ownName; }
  bool separatesBackward() const override { return model->separatesBackward(); }
  bool monotone() const override { return model->monotone(); }
  double fixedStepMs() const override {
    return error.isSaid() ? 0 : model->fixedStepMs();
  }
  PredictionInterval stepInterval() const override {
    return model->stepInterval();
  }
  PredictionInterval
  computeInterval(const DeviceClass &deviceClass) const override {
    return model->computeInterval(deviceClass);
  }
  PredictionInterval communicationInterval() const override {
    return model->communicationInterval();
  }
  std::optional<Target> measuredTarget() const override {
    return model->measuredTarget();
  }
  const SumEmbedding *sumEmbedding() const override { return embedding.get(); }
  std::optional<std::string> answerError() const override {
    return error.get();
  }

  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override;
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> startSkewsMs,
                                      Direction direction) const override;
  std::vector<double> arrivalsMs(const Traffic &traffic,
                                 std::span<const double> startsMs,
                                 double evenMs,
                                 Direction direction) const override;
  std::vector<std::string> remarks(std::span<const ShardSet> sets,
                                   const Topology &topology) const override;
  CostBound lowerBound(std::span<const BoundTable> tables,
                       const Topology &topology) const override;

private:
  template <typename Ask>
  std::vector<double> timesOfDevices(const char *what, size_t devices,
                                     const Ask &ask) const;

  std::unique_ptr<CostModel> model;
  std::string ownName;
  mutable FirstError error;
  std::unique_ptr<CheckedEmbedding> embedding;
};

void CheckedModel::computeMs(std::span<const ShardSet> sets,
                             std::span<ComputeMs> out) const {
  std::ranges::fill(out, ComputeMs{kUnwritten, kUnwritten});
  bool isRight = error.guard("computeMs", [&] {
    model->computeMs(sets, out);
    error.checkTimes(out, "computeMs");
  });
  if (!isRight)
    std::ranges::fill(out, ComputeMs{kDummyMs, kDummyMs});
}

template <typename Ask>
std::vector<double> CheckedModel::timesOfDevices(const char *what,
                                                 size_t devices,
                                                 const Ask &ask) const {
  std::vector<double> times;
  bool isRight = error.guard(what, [&] {
    times = ask();
    if (times.size() != devices)
      error.say(std::string(what) + ": expected " + std::to_string(devices) +
                " times, one per device, got: " + std::to_string(times.size()));
    for (size_t i = 0; i < times.size(); ++i)
      if (!(times[i] >= 0 && times[i] <= kMaxMs))
        error.checkTime(times[i], indexed(what, i));
  });
  return isRight ? times : std::vector<double>(devices, kDummyMs);
}

std::vector<double>
CheckedModel::communicationMs(const Traffic &traffic,
                              std::span<const double> startSkewsMs,
                              Direction direction) const {
  return timesOfDevices("communicationMs", traffic.dims.size(), [&] {
    return model->communicationMs(traffic, startSkewsMs, direction);
  });
}

std::vector<double> CheckedModel::arrivalsMs(const Traffic &traffic,
                                             std::span<const double> startsMs,
                                             double evenMs,
                                             Direction direction) const {
  return timesOfDevices("arrivalsMs", traffic.dims.size(), [&] {
    return model->arrivalsMs(traffic, startsMs, evenMs, direction);
  });
}

std::vector<std::string> CheckedModel::remarks(std::span<const ShardSet> sets,
                                               const Topology &topology) const {
  std::vector<std::string> remarks;
  error.guard("remarks", [&] { remarks = model->remarks(sets, topology); });
  return remarks;
}

CostBound CheckedModel::lowerBound(std::span<const BoundTable> tables,
                                   const Topology &topology) const {
  CostBound bound;
  bool isRight = error.guard("lowerBound", [&] {
    bound = model->lowerBound(tables, topology);
    for (double ms :
         {bound.maxForwardMs, bound.maxBackwardMs, bound.maxTotalMs,
          bound.minCommunicationMs, bound.maxInputMs,
          bound.maxForwardCommunicationMs, bound.maxBackwardCommunicationMs,
          bound.maxForwardSendMs, bound.maxReceiveBackwardMs})
      error.checkTime(ms, "lowerBound");
  });
  return isRight ? bound : CostBound();
}

} // namespace

std::unique_ptr<CostModel>
neuroshard::makeChecked(std::unique_ptr<CostModel> model, std::string name) {
  return std::make_unique<CheckedModel>(std::move(model), std::move(name));
}
