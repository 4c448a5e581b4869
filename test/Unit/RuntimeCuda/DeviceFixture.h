//===- DeviceFixture.h - A small artifact on the fake driver ----*- C++ -*-===//

#ifndef NEUROSHARD_TEST_RUNTIMECUDA_DEVICEFIXTURE_H
#define NEUROSHARD_TEST_RUNTIMECUDA_DEVICEFIXTURE_H

#include "Simulation.h"

#include <string>

namespace neuroshard::test {

inline Model smallModel() {
  Model model;
  model.tables = {{6, 8}, {5, 3, Rule::RowwiseAdagrad}};
  model.exchanges = {{8, 2, false, {{0, 0}, {1, 1}}}};
  model.shards = {{0, 0, 6, 0, 8, 0}, {1, 0, 5, 0, 2, 0}, {1, 0, 5, 2, 3, 0}};
  return model;
}

class DeviceTest : public FakeTest {
protected:
  DeviceTest() : artifact(smallModel(), fake) {}

  std::string openError(nsc_status expected = NSC_ERROR,
                        const nsc_options *options = nullptr,
                        int32_t planDevice = 0, int32_t ordinal = 0) {
    auto *handle = reinterpret_cast<nsc_device *>(8);
    EXPECT_EQ(nsc_open(artifact.path().c_str(), planDevice, ordinal, options,
                       &handle),
              expected);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(fake.liveBlocks, 0);
    return nsc_last_error(nullptr);
  }

  /// Changes the GPU program before it is opened.
  template <typename Change> void change(Change function) {
    nlohmann::json program = artifact.read("program0.gpu.json");
    function(program);
    artifact.write("program0.gpu.json", program.dump());
    artifact.sign();
  }

  Artifact artifact;
};

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIMECUDA_DEVICEFIXTURE_H
