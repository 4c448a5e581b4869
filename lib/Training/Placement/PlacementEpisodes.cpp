//===- PlacementEpisodes.cpp - Runs and records episodes ------------------===//

#include "PlacementEpisodes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

using namespace neuroshard;

namespace {

/// Cost of a stuck episode relative to the worst complete one.
constexpr double kStuckFactor = 1.5;
/// Costs that differ by a smaller share are equal.
constexpr double kLeastSpread = 1e-4;

class EqualPlayer final : public PlacementPlayer {
public:
  void reset() override {}
  void placed(size_t, int) override {}
  void scores(size_t, std::span<const PlacementDevice>,
              std::span<float> out) override {
    std::fill(out.begin(), out.end(), 0.0f);
  }
};

/// Makes the choices of another player and records its scores.
class ListeningPlayer final : public PlacementPlayer {
public:
  ListeningPlayer(PlacementPlayer &inner, std::vector<float> &heard)
      : inner(inner), heard(heard) {}
  void reset() override { inner.reset(); }
  void placed(size_t piece, int device) override {
    inner.placed(piece, device);
  }
  void scores(size_t piece, std::span<const PlacementDevice> devices,
              std::span<float> out) override {
    inner.scores(piece, devices, out);
    heard.insert(heard.end(), out.begin(), out.end());
  }

private:
  PlacementPlayer &inner;
  std::vector<float> &heard;
};

/// The inputs that all episodes of a task share.
EpisodeData describeTask(const PlacementMdp &mdp) {
  PlacementTask task = mdp.task();
  EpisodeData data;
  data.devices = task.deviceCount;
  data.pieces = static_cast<int64_t>(task.pieces.size());
  for (size_t piece = 0; piece < task.pieces.size(); ++piece)
    for (const ShardWork *work : task.pieces[piece].works) {
      size_t begin = data.tables.size();
      data.tables.resize(begin + kFeatureCount);
      featurize(*work, std::span(data.tables).subspan(begin));
      data.pieceOfTable.push_back(static_cast<int64_t>(piece));
    }
  data.given.assign(mdp.given().begin(), mdp.given().end());
  for (size_t piece : mdp.order())
    data.order.push_back(static_cast<int64_t>(piece));
  return data;
}

/// Appends the steps of an episode; those after a dead end are empty.
class Recorder {
public:
  Recorder(EpisodeData &data, const PlacementTask &task)
      : data(data), scale(task) {}

  void begin(const PlacementMdp &mdp) {
    scale.reset();
    for (auto [piece, device] : mdp.given())
      scale.placed(piece);
    ++data.episodes;
  }
  void record(size_t piece, std::span<const PlacementDevice> devices,
              int action) {
    size_t begin = data.features.size();
    data.features.resize(begin + devices.size() * kPlacementFeatureCount);
    scale.featurize(piece, devices, std::span(data.features).subspan(begin));
    for (const PlacementDevice &device : devices)
      data.admits.push_back(device.admits);
    data.actions.push_back(action);
    scale.placed(piece);
  }
  void end() {
    size_t steps = static_cast<size_t>(data.episodes) * data.order.size();
    size_t devices = static_cast<size_t>(data.devices);
    data.actions.resize(steps, -1);
    data.admits.resize(steps * devices, 1);
    data.features.resize(steps * devices * kPlacementFeatureCount, 0.0f);
  }

private:
  EpisodeData &data;
  PlacementScale scale;
};

} // namespace

RecordedEpisodes neuroshard::recordEpisodes(PlacementMdp &mdp,
                                            const PlacementPolicy *policy,
                                            int episodes, uint64_t seed,
                                            std::vector<float> *scores) {
  RecordedEpisodes recorded;
  recorded.data = describeTask(mdp);
  Recorder recorder(recorded.data, mdp.task());
  std::unique_ptr<PlacementPlayer> player;
  if (policy)
    player = policy->play(mdp.task());
  else
    player = std::make_unique<EqualPlayer>();
  std::vector<float> ignored;
  ListeningPlayer listener(*player, scores ? *scores : ignored);
  for (int i = 0; i < episodes; ++i) {
    recorder.begin(mdp);
    bool complete = playEpisode(
        mdp, scores ? listener : *player,
        seed * 1000003 + static_cast<uint64_t>(i),
        [&](size_t piece, std::span<const PlacementDevice> devices,
            int action) { recorder.record(piece, devices, action); });
    recorder.end();
    double steps = static_cast<double>(std::max<size_t>(1, mdp.order().size()));
    recorded.costsMs.push_back(complete ? mdp.costMs() : NAN);
    recorded.placedShare.push_back(static_cast<double>(mdp.steps()) / steps);
  }
  return recorded;
}

void neuroshard::judgeEpisodes(RecordedEpisodes &recorded) {
  double worst = 0;
  for (double cost : recorded.costsMs)
    if (!std::isnan(cost))
      worst = std::max(worst, cost);
  if (worst == 0)
    worst = 1;
  std::vector<double> costs = recorded.costsMs;
  for (size_t i = 0; i < costs.size(); ++i)
    if (std::isnan(costs[i]))
      costs[i] = worst * (kStuckFactor + 1 - recorded.placedShare[i]);
  double count = static_cast<double>(costs.size()), mean = 0, squares = 0;
  for (double cost : costs)
    mean += cost / count;
  for (double cost : costs)
    squares += (cost - mean) * (cost - mean) / count;
  double spread = std::sqrt(squares) + kLeastSpread * mean;
  recorded.data.advantages.clear();
  for (double cost : costs)
    recorded.data.advantages.push_back(
        static_cast<float>((mean - cost) / spread));
}

void neuroshard::inParallel(int threads, size_t count,
                            const std::function<void(size_t)> &job) {
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++)
      job(i);
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i)
    helpers.emplace_back(work);
  work();
}
