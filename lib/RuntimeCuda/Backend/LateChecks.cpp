//===- LateChecks.cpp - Offsets that kernels check ------------------------===//

#include "LateChecks.h"

#include "neuroshard/Artifact/InputName.h"

#include <sstream>
#include <vector>

namespace neuroshard::cuda {

namespace {
/// The number of the first wrong bag, and whether offsets end elsewhere.
constexpr size_t kWordsOfExchange = 2;
constexpr uint64_t kNothing = ~uint64_t{0};
} // namespace

LateChecks::LateChecks(const Gpu &gpu, const Manifest &manifest,
                       Routing &routing)
    : gpu(gpu), manifest(manifest), routing(routing),
      words(gpu,
            static_cast<int64_t>(manifest.exchanges.size() * kWordsOfExchange *
                                 sizeof(uint64_t)),
            "the words of wrong offsets") {
  OwnStream stream(gpu);
  clear(stream.get());
  stream.wait();
}

void LateChecks::clear(CUstream stream) {
  gpu.driver.check(gpu.driver.memsetD8Async(words.address(), 0xff,
                                            static_cast<size_t>(words.size()),
                                            stream),
                   "clearing the words of wrong offsets");
}

void LateChecks::trust(int32_t exchange, const runtime::JaggedInput &input,
                       int64_t *offsets, float *sizes, CUstream stream) {
  auto *bad =
      words.as<uint64_t>() + static_cast<size_t>(exchange) * kWordsOfExchange;
  routing.checkOffsets(input.offsets, input.numOffsets - 1, bad, stream);
  routing.trustOffsets(input, bad, offsets, sizes, stream);
}

std::optional<std::string> LateChecks::take(CUstream stream) {
  const CudaDriver &driver = gpu.driver;
  driver.check(driver.streamSynchronize(stream), "waiting for the steps");
  std::vector<uint64_t> found(manifest.exchanges.size() * kWordsOfExchange);
  driver.check(driver.memcpyDtoH(found.data(), words.address(),
                                 found.size() * sizeof(uint64_t)),
               "reading the words of wrong offsets");
  clear(stream);
  for (size_t i = 0; i < manifest.exchanges.size(); ++i) {
    uint64_t bag = found[i * kWordsOfExchange];
    std::ostringstream text;
    text << inputName(manifest.exchanges[i]);
    if (bag != kNothing)
      text << "offsets must not decrease and bags hold less than 2^31 ids: bag "
           << bag << " is wrong";
    else if (found[i * kWordsOfExchange + 1] != kNothing)
      text << "offsets must go from 0 to the number of ids";
    else
      continue;
    text << ", in a step since the last check; bags from there on were empty";
    return text.str();
  }
  return std::nullopt;
}

} // namespace neuroshard::cuda
