//===- Models.cpp - Fuzzes the readers of model files ---------------------===//
///
/// \file
/// Compute models, communication models and placement policies: the header of
/// the file, its metadata, the weights. A model that is accepted predicts.
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "JsonMutator.h"
#include "SmallCommunication.h"
#include "SmallPolicy.h"
#include "TemporaryFolder.h"
#include "neuroshard/CostModel/Roofline.h"
#include "neuroshard/Planner/PlacementMdp.h"

#include <cmath>
#include <cstring>
#include <iterator>

using namespace neuroshard;
using namespace neuroshard::fuzz;

namespace {

void predictCompute(const NeuralComputeParameters &parameters) {
  NeuralCompute model(parameters);
  std::mt19937 random(1);
  DeviceClass deviceClass = *findDeviceClass("CPU");
  std::vector<double> sum(static_cast<size_t>(model.size()));
  model.embed(test::randomShard(random), deviceClass, sum);
  ComputeMs time = model.head(sum, 1, deviceClass);
  require(!std::isnan(time.forwardMs) && !std::isnan(time.backwardMs),
          "a compute model predicts numbers");
}

void predictCommunication(const CommunicationParameters &parameters) {
  CommunicationModel model(parameters);
  std::mt19937 random(1);
  Topology topology = *parseTopology("2x2xCPU");
  Traffic traffic = test::randomTraffic(topology, random);
  for (double time :
       model.timesMs(traffic, std::vector<double>(4), Direction::Forward))
    require(!std::isnan(time), "a communication model predicts numbers");
}

void playPolicy(const PlacementPolicyParameters &parameters) {
  static const ShardingProblem kProblem = test::smallProblem(4, "2xH200");
  static const auto kRoofline = makeRooflineModel();
  auto policy = makePlacementPolicy(parameters, "fuzzed");
  auto mdp = PlacementMdp::make(kProblem, *kRoofline, {});
  require(mdp.has_value(), "the problem is sound");
  PlacementTask task = mdp->task();
  playEpisode(*mdp, *policy->play(task));
}

template <typename Read, typename Use>
void readAnd(const TensorFile &file, const Read &read, const Use &use) {
  auto parameters = read(file);
  if (!parameters) {
    require(!parameters.error().empty(), "a refused model has an error");
    return;
  }
  require(toTensorFile(*parameters).has_value(),
          "a model that is read can be written");
  use(*parameters);
}

/// The bytes of a small sound model of one of the three kinds.
std::string smallModel(unsigned kind) {
  Expected<TensorFile> file =
      kind == 0   ? toTensorFile(test::randomModel({2, 4, 4, 2, 3}))
      : kind == 1 ? toTensorFile(test::randomCommunicationModel(1))
                  : toTensorFile(test::smallPolicy(1));
  test::TemporaryFolder folder;
  std::string path = folder.file("model.safetensors");
  require(file && writeTensorFile(*file, path), "a small model is written");
  return test::slurp(path);
}

/// A number that layers should refuse, or that overflows in them.
float oddFloat(std::minstd_rand &random) {
  const float odd[] = {0.0f,  -0.0f, NAN,    INFINITY, -INFINITY,
                       3e38f, 1e20f, 100.0f, -100.0f,  1000.0f,
                       1e-9f, 1.0f,  -1.0f,  1e-40f};
  return odd[random() % std::size(odd)];
}

/// Changes the header as JSON, some numbers of the data, or bytes.
size_t mutateModel(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  static const std::string kSmall[] = {smallModel(0), smallModel(1),
                                       smallModel(2)};
  constexpr size_t kLengthBytes = 8;
  std::minstd_rand random(seed);
  uint64_t header = 0;
  if (size > kLengthBytes)
    std::memcpy(&header, data, kLengthBytes);
  if (header == 0 || header > size - kLengthBytes || random() % 64 == 0)
    return replaceInput(kSmall[random() % std::size(kSmall)], data, size,
                        maxSize);
  size_t begin = kLengthBytes + header;
  size_t floats = (size - begin) / sizeof(float);
  unsigned choice = random() % 8;
  if (choice == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  if (choice < 4 && floats > 0) {
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      float value = oddFloat(random);
      std::memcpy(data + begin + random() % floats * sizeof(float), &value,
                  sizeof value);
    }
    return size;
  }
  std::string text = changeJson(textOf(data + kLengthBytes, header), random);
  uint64_t length = text.size();
  std::string changed(reinterpret_cast<const char *>(&length), kLengthBytes);
  changed += text;
  changed += textOf(data + begin, size - begin);
  return replaceInput(changed, data, size, maxSize);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Expected<TensorFile> file = parseTensorFile(textOf(data, size), "input");
  if (!file) {
    require(!file.error().empty(), "a refused file has an error");
    return 0;
  }
  readAnd(*file, toComputeParameters, predictCompute);
  readAnd(*file, toCommunicationParameters, predictCommunication);
  readAnd(*file, toPlacementPolicyParameters, playPolicy);
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateModel)
