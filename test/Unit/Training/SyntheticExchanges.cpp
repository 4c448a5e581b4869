//===- SyntheticExchanges.cpp - Made-up measurements of exchanges ---------===//

#include "SyntheticExchanges.h"

#include "neuroshard/CostModel/CommunicationFeatures.h"

#include <cmath>
#include <random>

using namespace neuroshard;

namespace {

class Maker {
public:
  explicit Maker(uint64_t seed) : random(seed) {}

  CommunicationSamples make(int perCount) {
    samples.metadata = {{"device_class", "CPU"}, {"backend", "gloo"}};
    samples.links = {{20, 2}};
    for (int devices : {2, 3, 4, 6, 8}) {
      Topology topology = *parseTopology(std::to_string(devices) + "xCPU");
      topology.levels.front().latencyUs = 20;
      topology.levels.front().bandwidthGBps = 2;
      samples.topologies.push_back(topology);
      for (int i = 0; i < perCount; ++i)
        addSample(devices, i % 5 == 4, i % 10 == 9);
    }
    return std::move(samples);
  }

private:
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  }
  void addSample(int devices, bool heldOut, bool repeated);
  void measure(CommunicationSample &sample);

  std::mt19937_64 random;
  CommunicationSamples samples;
};

void Maker::addSample(int devices, bool heldOut, bool repeated) {
  CommunicationSample sample;
  sample.topology = static_cast<int64_t>(samples.topologies.size()) - 1;
  sample.direction = static_cast<Direction>(random() % 3);
  sample.batch = 1024;
  sample.heldOut = heldOut;
  double mean = std::exp(uniform(std::log(1e3), std::log(3e7)));
  double total = 0;
  for (int d = 0; d < devices; ++d) {
    sample.bytesOut.push_back(std::round(mean * uniform(0.2, 1.8)));
    sample.dims.push_back(sample.bytesOut.back() / 4096);
    sample.skewsMs.push_back(random() % 2 ? uniform(0, 19) : 0);
    total += sample.bytesOut.back();
  }
  double first =
      *std::min_element(sample.skewsMs.begin(), sample.skewsMs.end());
  for (double &skew : sample.skewsMs)
    skew -= first;
  sample.bytesIn.assign(static_cast<size_t>(devices),
                        std::round(total / devices));
  sample.referenceBeforeMs = sample.referenceAfterMs = 1;
  measure(sample);
  samples.samples.push_back(sample);
  if (!repeated)
    return;
  sample.repeatOf = static_cast<int64_t>(samples.samples.size()) - 1;
  measure(sample);
  samples.samples.push_back(sample);
}

void Maker::measure(CommunicationSample &sample) {
  Traffic traffic = samples.trafficOf(sample);
  CommunicationFeatures features = featurizeExchange(
      traffic, traffic.topology->levels, sample.skewsMs, sample.direction);
  double devices = static_cast<double>(sample.bytesOut.size());
  std::normal_distribution<double> noise(0, 0.03);
  sample.timesMs.clear();
  for (size_t d = 0; d < sample.bytesOut.size(); ++d)
    sample.timesMs.push_back(
        features.waitMs[d] +
        (0.02 * devices + features.closedFormMs[d] * (0.5 + 0.3 * devices)) *
            std::exp(noise(random)));
}

} // namespace

CommunicationSamples neuroshard::test::makeSyntheticExchanges(int perCount,
                                                              uint64_t seed) {
  return Maker(seed).make(perCount);
}
