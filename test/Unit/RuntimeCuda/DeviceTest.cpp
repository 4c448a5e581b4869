//===- DeviceTest.cpp - Opening, tables, and everything that is wrong -----===//
//
// The C interface beside its steps: each mistake has one message that names it.
//
//===----------------------------------------------------------------------===//

#include "Simulation.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Runtime/Initializer.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <dlfcn.h>
#include <sys/stat.h>

namespace neuroshard::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Model smallModel() {
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

TEST_F(DeviceTest, SaysWhatWasOpened) {
  OpenDevice device(artifact);
  nsc_info info;
  ASSERT_EQ(nsc_get_info(device, &info), NSC_OK);
  EXPECT_STREQ(info.gpu, "Fake GPU");
  EXPECT_STREQ(info.image, "new.cubin");
  EXPECT_EQ(fake.image, "image new.cubin");
  EXPECT_STREQ(info.module, "0123");
  EXPECT_EQ(info.capability, 90);
  EXPECT_EQ(info.num_slots, 3);
  EXPECT_EQ(info.num_lookups, 3);
  EXPECT_EQ(info.two_phase, 1);
  nsc_slot slot;
  ASSERT_EQ(nsc_get_slot(device, 2, &slot), NSC_OK);
  EXPECT_STREQ(slot.table, "t1");
  EXPECT_EQ(slot.col_begin, 2);
  EXPECT_EQ(slot.col_end, 3);
  EXPECT_EQ(slot.weight_stride, 4);
  EXPECT_EQ(slot.state_stride, 1);
  EXPECT_EQ(slot.weight_bytes, 5 * 16);
  EXPECT_EQ(slot.num_states, 1);
  EXPECT_EQ(slot.two_phase, 1);
  nsc_lookup lookup;
  ASSERT_EQ(nsc_get_lookup(device, 2, &lookup), NSC_OK);
  EXPECT_STREQ(lookup.input, "input0");
  EXPECT_STREQ(lookup.feature, "f1");
  EXPECT_EQ(lookup.slot, 2);
  EXPECT_EQ(lookup.dim, 1);
  nsc_memory memory;
  ASSERT_EQ(nsc_get_memory(device, &memory), NSC_OK);
  EXPECT_EQ(memory.weights, 6 * 32 + 5 * 16 + 5 * 16);
  EXPECT_EQ(memory.states, 2 * 5 * 4);
  EXPECT_EQ(memory.weights + memory.states + memory.step + memory.arrays,
            fake.liveBytes);
  EXPECT_EQ(nsc_get_slot(device, 3, &slot), NSC_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("there is no slot 3"));
  EXPECT_EQ(nsc_get_lookup(device, -1, &lookup), NSC_ERROR);
}

TEST_F(DeviceTest, InitialWeightsAreThoseOfTheCpu) {
  nsc_options options = {};
  options.initialize = 1;
  options.seed = 42;
  OpenDevice device(artifact, 0, &options);
  runtime::Manifest manifest =
      runtime::parseManifest(smallModel().manifest().dump());
  runtime::TableInitializer expected(manifest.tables[1], 42);
  std::vector<float> values(5);
  ASSERT_EQ(nsc_read_weights(device, 2, 0, 5, values.data()), NSC_OK);
  for (int64_t row = 0; row < 5; ++row)
    EXPECT_EQ(values[size_t(row)], expected.value(row, 2));
  std::vector<float> state(5);
  ASSERT_EQ(nsc_read_state(device, 2, 0, 0, 5, state.data()), NSC_OK);
  EXPECT_THAT(state, testing::Each(1.0f)); // the initial accumulator
}

TEST_F(DeviceTest, RowsAreCopiedBothWays) {
  OpenDevice device(artifact);
  std::vector<float> rows = {1, 2, 3, 4}, all(10);
  ASSERT_EQ(nsc_write_weights(device, 1, 1, 3, rows.data()), NSC_OK);
  ASSERT_EQ(nsc_read_weights(device, 1, 0, 5, all.data()), NSC_OK);
  EXPECT_EQ(std::vector<float>(all.begin() + 2, all.begin() + 6), rows);
  EXPECT_NE(all[0], 1);
  ASSERT_EQ(nsc_write_state(device, 1, 0, 3, 5, rows.data()), NSC_OK);
  ASSERT_EQ(nsc_read_state(device, 1, 0, 2, 5, all.data()), NSC_OK);
  EXPECT_EQ(std::vector<float>(all.begin(), all.begin() + 3),
            (std::vector<float>{1, 1, 2}));
  EXPECT_EQ(nsc_read_weights(device, 1, 4, 6, all.data()), NSC_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("rows [4, 6)"));
  EXPECT_EQ(nsc_read_state(device, 0, 0, 0, 1, all.data()), NSC_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("no optimizer state 0"));
  EXPECT_EQ(nsc_read_weights(device, 1, 0, 1, nullptr), NSC_ERROR);
}

TEST_F(DeviceTest, TakesMemoryOfTheCaller) {
  DeviceArray<float> first(6 * 8), second(5 * 4), third(5 * 4);
  DeviceArray<float> states(16);
  nsc_slot_memory slots[] = {{first.data(), nullptr, nullptr},
                             {second.data(), states.data(), nullptr},
                             {third.data(), states.data() + 8, nullptr}};
  first[9] = 5;
  nsc_options options = {};
  options.slots = slots;
  {
    OpenDevice device(artifact, 0, &options);
    nsc_slot slot;
    ASSERT_EQ(nsc_get_slot(device, 0, &slot), NSC_OK);
    EXPECT_EQ(slot.weights, first.data());
    std::vector<float> row(8);
    ASSERT_EQ(nsc_read_weights(device, 0, 1, 2, row.data()), NSC_OK);
    EXPECT_EQ(row[1], 5); // as it was
  }
  EXPECT_EQ(first[9], 5);
  auto *handle = reinterpret_cast<nsc_device *>(8);
  options.num_slots = 2;
  EXPECT_EQ(nsc_open(artifact.path().c_str(), 0, 0, &options, &handle),
            NSC_ERROR);
  EXPECT_THAT(nsc_last_error(nullptr),
              HasSubstr("expected memory for 3 slots, those of device 0, found "
                        "it for 2"));
  options.num_slots = 3;
  slots[1].state0 = nullptr;
  EXPECT_EQ(nsc_open(artifact.path().c_str(), 0, 0, &options, &handle),
            NSC_ERROR);
  EXPECT_THAT(nsc_last_error(nullptr), HasSubstr("state0 of table \"t1\""));
}

TEST_F(DeviceTest, EverythingIsFreed) {
  {
    OpenDevice device(artifact);
    EXPECT_GT(fake.liveBlocks, 0);
  }
  EXPECT_EQ(fake.liveBlocks, 0);
  EXPECT_EQ(fake.liveBytes, 0);
  nsc_close(nullptr);
}

TEST_F(DeviceTest, ArtifactsThatDoNotFitAreRefused) {
  EXPECT_THAT(openError(NSC_ERROR, nullptr, 1), HasSubstr("no device 1"));
  EXPECT_THAT(openError(NSC_ERROR, nullptr, 0, 7),
              HasSubstr("no GPU 7; this machine has 1"));
  change([](auto &program) { program["abi"] = NSG_VERSION + 1; });
  EXPECT_THAT(openError(), HasSubstr("$.abi: expected version "));
  change([](auto &program) {
    program["abi"] = NSG_VERSION;
    program["schema"] = "other/1";
  });
  EXPECT_THAT(openError(), HasSubstr("neuroshard.gpu_program/1"));
  change([](auto &program) {
    program["schema"] = "neuroshard.gpu_program/1";
    program["slots"][0]["dim"] = 9;
  });
  EXPECT_THAT(openError(), HasSubstr("$.slots[0].dim: expected 8"));
  change([](auto &program) {
    program["slots"][0]["dim"] = 8;
    program["kernels"] = {"nsg_lookup"};
  });
  EXPECT_THAT(openError(), HasSubstr("expected \"nsg_update\""));
}

TEST_F(DeviceTest, AnArtifactForCpusAloneSaysSo) {
  nlohmann::json manifest = artifact.read("manifest.json");
  manifest["programs"][0].erase("gpu_xxh3");
  artifact.write("manifest.json", manifest.dump());
  EXPECT_THAT(openError(), HasSubstr("manifest.json' does not know "
                                     "program0.gpu.json, which is of another "
                                     "compilation; compile the model again"));
  std::filesystem::remove(artifact.path() + "/program0.gpu.json");
  EXPECT_THAT(openError(), HasSubstr("compile the model with --gpu"));
}

TEST_F(DeviceTest, FilesOfOtherCompilationsAreRefused) {
  nlohmann::json program = artifact.read("program0.gpu.json");
  nlohmann::json swapped = program;
  std::swap(swapped["lookups"][0]["variant"], swapped["lookups"][1]["variant"]);
  artifact.write("program0.gpu.json", swapped.dump());
  EXPECT_THAT(
      openError(),
      testing::AllOf(HasSubstr("program0.gpu.json' is not the file that "
                               "manifest.json was written with"),
                     HasSubstr("; compile the model again")));
  artifact.write("program0.gpu.json", program.dump());
  const std::string image = "image new.cubin";
  fake.image = "none";
  for (std::string other : {"image old.cubin", "image new.cubi", ""}) {
    artifact.write("new.cubin", other);
    EXPECT_THAT(openError(),
                testing::AllOf(
                    HasSubstr("new.cubin' is not the file that its .gpu.json "
                              "was written with"),
                    HasSubstr("(" + std::to_string(other.size()) + " bytes)")));
    EXPECT_EQ(fake.image, "none");
  }
  setenv("NEUROSHARD_CUDA_UNCHECKED", "1", 1);
  {
    OpenDevice device(artifact);
  }
  unsetenv("NEUROSHARD_CUDA_UNCHECKED");
  artifact.write("new.cubin", image);
  OpenDevice device(artifact);
}

TEST_F(DeviceTest, HashesAreThoseOfTheCompiler) {
  // XXH3 of 128 bits, as the specification of xxHash has it for no bytes.
  EXPECT_EQ(cuda::hashOf(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(cuda::hashOf("NeuroShard"), cuda::hashOf("NeuroShard"));
  EXPECT_NE(cuda::hashOf("NeuroShard"), cuda::hashOf("Neuroshard"));
}

TEST_F(DeviceTest, WhatIsNoFileIsRefusedAtOnce) {
  for (const char *file : {"manifest.json", "program0.gpu.json", "new.cubin"}) {
    std::string path = artifact.path() + "/" + file;
    std::filesystem::rename(path, path + ".kept");
    EXPECT_THAT(openError(),
                testing::AllOf(HasSubstr(path), HasSubstr("No such file")));
    std::filesystem::create_directory(path);
    EXPECT_THAT(openError(), HasSubstr(path + "': expected a file, found a "
                                              "directory"));
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(openError(), HasSubstr(path + "': expected a file, found a "
                                              "pipe"));
    std::filesystem::remove(path);
    std::filesystem::rename(path + ".kept", path);
  }
  OpenDevice device(artifact);
}

TEST_F(DeviceTest, ImagesFitTheGpu) {
  for (auto [capability, file] : {std::pair{80, "old.cubin"},
                                  {86, "old.cubin"},
                                  {75, "any.ptx"},
                                  {90, "new.cubin"},
                                  {100, "any.ptx"}}) {
    fake.capability = capability;
    OpenDevice device(artifact);
    nsc_info info;
    ASSERT_EQ(nsc_get_info(device, &info), NSC_OK);
    EXPECT_STREQ(info.image, file);
  }
  change([](auto &program) { program["images"].erase(2); });
  fake.capability = 100;
  EXPECT_THAT(
      openError(),
      HasSubstr("no image for this GPU (sm_100); it has: sm_80, sm_90"));
  fake.capability = 90;
  fake.failingCall = "cuModuleLoadData";
  EXPECT_THAT(openError(NSC_CUDA_ERROR), HasSubstr("cannot load 'new.cubin'"));
  fake.failingCall = "cuModuleGetFunction";
  EXPECT_THAT(openError(), HasSubstr("has no kernel nsg_lookup"));
}

TEST_F(DeviceTest, TooLittleMemoryNamesTableAndBytes) {
  fake.freeBytes = 100;
  EXPECT_THAT(
      openError(NSC_OUT_OF_MEMORY),
      testing::AllOf(HasSubstr("weights of table \"t0\""),
                     HasSubstr("192 bytes asked for, 100 of 100 free")));
  fake.freeBytes = 192 + 80 + 10;
  EXPECT_THAT(openError(NSC_OUT_OF_MEMORY),
              HasSubstr("optimizer state of table \"t1\""));
}

TEST_F(DeviceTest, AStepWithoutMemoryFailsAndTheNextWorks) {
  Simulation simulation(smallModel(), 3);
  StepCase step = simulation.partStep(0);
  std::vector<nsc_part> parts = step.raw();
  auto count = int32_t(parts.size());
  OpenDevice device(artifact);
  simulation.fillTables(device, 0);
  fake.freeBytes = 64;
  EXPECT_EQ(nsc_forward(device, parts.data(), count, NSC_TRAINING, stream),
            NSC_OUT_OF_MEMORY);
  fake.freeBytes = 1 << 30;
  ASSERT_EQ(nsc_set_step(device, 0.5f, 1, stream), NSC_OK);
  EXPECT_EQ(nsc_backward(device, step.gradients.data(), count, stream),
            NSC_ERROR);
  ASSERT_EQ(nsc_forward(device, parts.data(), count, NSC_TRAINING, stream),
            NSC_OK)
      << device.error();
  ASSERT_EQ(nsc_backward(device, step.gradients.data(), count, stream), NSC_OK);
  ASSERT_EQ(nsc_backward_apply(device, stream), NSC_OK);
  ASSERT_EQ(nsc_check(device, stream), NSC_OK);
  simulation.update(step, 0, 0.5f);
  simulation.expectTables(device, 0);
}

TEST_F(DeviceTest, FailuresOfTheDriverAreReported) {
  Simulation simulation(smallModel(), 3);
  StepCase step = simulation.partStep(0);
  std::vector<nsc_part> parts = step.raw();
  OpenDevice device(artifact);
  fake.failingCall = "cuLaunchKernel";
  EXPECT_EQ(nsc_forward(device, parts.data(), int32_t(parts.size()),
                        NSC_INFERENCE, stream),
            NSC_CUDA_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("launching nsg_lookup: "));
  fake.failingCall = "nsg_sort";
  EXPECT_EQ(nsc_forward(device, parts.data(), int32_t(parts.size()),
                        NSC_TRAINING, stream),
            NSC_CUDA_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("sorting ids"));
}

class BadIdTest : public DeviceTest {
protected:
  BadIdTest() {
    ids.emplace_back(std::vector<int64_t>{0, 1, 2, 3});
    out.emplace_back(size_t(64));
    part.lookup = 1; // rows 0 ... 4 of t1
    part.ids = ids[0].data();
    part.pooling = 2;
    part.bags = 2;
    part.id_end = 4;
    part.out = out[0].data();
    part.out_stride = 4;
  }

  nsc_status run(nsc_device *device, int32_t parts = 1) {
    EXPECT_EQ(nsc_forward(device, &part, parts, NSC_INFERENCE, stream), NSC_OK)
        << nsc_last_error(device);
    return nsc_check(device, stream);
  }

  std::vector<DeviceArray<int64_t>> ids;
  std::vector<DeviceArray<float>> out;
  nsc_part part = {};
};

TEST_F(BadIdTest, NamesTableFeaturePositionAndId) {
  OpenDevice device(artifact);
  EXPECT_EQ(run(device), NSC_OK);
  ids[0][2] = 5;
  ids[0][3] = -1;
  EXPECT_EQ(run(device), NSC_BAD_ID);
  EXPECT_THAT(device.error(),
              testing::AllOf(HasSubstr("id 5 at position 2 of the ids"),
                             HasSubstr("table \"t1\", feature \"f1\""),
                             testing::Not(HasSubstr("input")), // its only one
                             HasSubstr("expected rows from 0 to 4")));
  EXPECT_EQ(nsc_check(device, stream), NSC_OK); // reported once
  ids[0][2] = 0;
  EXPECT_EQ(run(device), NSC_BAD_ID);
  EXPECT_THAT(device.error(), HasSubstr("id -1 at position 3"));
  ids[0][3] = 0;
  EXPECT_EQ(run(device), NSC_OK);
}

TEST_F(BadIdTest, IsKeptWhenThePlanServesOthers) {
  OpenDevice device(artifact);
  ids[0][1] = 99;
  ASSERT_EQ(nsc_forward(device, &part, 1, NSC_INFERENCE, stream), NSC_OK);
  // Other lookups take over all plans, one after the other.
  part.lookup = 0;
  part.out_stride = 8;
  for (int i = 0; i < 12; ++i) {
    ids.emplace_back(std::vector<int64_t>{0, 1, 2, 3});
    part.ids = ids.back().data();
    ASSERT_EQ(nsc_forward(device, &part, 1, NSC_INFERENCE, stream), NSC_OK);
  }
  EXPECT_EQ(nsc_check(device, stream), NSC_BAD_ID);
  EXPECT_THAT(device.error(), HasSubstr("id 99 at position 1"));
  EXPECT_THAT(device.error(), HasSubstr("table \"t1\""));
  EXPECT_EQ(nsc_check(device, stream), NSC_OK);
}

TEST_F(BadIdTest, SaysIfTheIdIsGone) {
  OpenDevice device(artifact);
  ids[0][1] = 99;
  ASSERT_EQ(nsc_forward(device, &part, 1, NSC_INFERENCE, stream), NSC_OK);
  theDriver().ctxSynchronize();
  ids[0][1] = 2;
  EXPECT_EQ(nsc_check(device, stream), NSC_BAD_ID);
  EXPECT_THAT(device.error(), HasSubstr("overwritten"));
  EXPECT_THAT(device.error(), HasSubstr("position 1"));
}

class MistakeTest : public BadIdTest {
protected:
  /// Expects one message for a part that `change` has made wrong.
  template <typename Change>
  void refuse(nsc_device *device, const char *message, Change change,
              int32_t training = NSC_INFERENCE) {
    nsc_part wrong = part;
    change(wrong);
    EXPECT_EQ(nsc_forward(device, &wrong, 1, training, stream), NSC_ERROR)
        << message;
    EXPECT_THAT(nsc_last_error(device), HasSubstr(message));
  }
};

TEST_F(MistakeTest, PartsThatKernelsCannotRunAreRefused) {
  OpenDevice device(artifact);
  refuse(device, "there is no lookup 3", [](auto &p) { p.lookup = 3; });
  refuse(device, "ids is null", [](auto &p) { p.ids = nullptr; });
  refuse(device, "ids is not aligned to its 8 bytes",
         [](auto &p) { p.ids = static_cast<const char *>(p.ids) + 4; });
  refuse(device, "[id_begin, id_end) is [0, -1)",
         [](auto &p) { p.id_end = -1; });
  refuse(device, "must be 2 bags x 3 ids, found 4",
         [](auto &p) { p.pooling = 3; });
  refuse(device, "expected a number of bags", [](auto &p) { p.bags = -1; });
  refuse(device, "out is not aligned to 4 bytes",
         [](auto &p) { p.out = static_cast<char *>(p.out) + 2; });
  refuse(device, "expected out_stride to be at least 2",
         [](auto &p) { p.out_stride = 1; });
  refuse(device, "out is not aligned to 16 bytes", [](auto &p) {
    p.lookup = 0;
    p.out = static_cast<char *>(p.out) + 4;
  });
  refuse(device, "a multiple of 4, found 9", [](auto &p) {
    p.lookup = 0;
    p.out_stride = 9;
  });
  refuse(device, "expected training to be 0, 1 or 2", [](auto &) {}, 3);
  EXPECT_EQ(nsc_forward(device, nullptr, 1, 0, stream), NSC_ERROR);
  EXPECT_EQ(nsc_forward(nullptr, &part, 1, 0, stream), NSC_ERROR);
  EXPECT_STREQ(nsc_last_error(nullptr), "the device is null");
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(MistakeTest, CallsOutOfOrderAreRefused) {
  OpenDevice device(artifact);
  nsc_gradient gradient = {out[0].data(), 4, nullptr};
  auto refuseBackward = [&](int32_t count, const char *message) {
    EXPECT_EQ(nsc_backward(device, &gradient, count, stream), NSC_ERROR);
    EXPECT_THAT(device.error(), HasSubstr(message));
  };
  refuseBackward(1, "nsc_backward comes after an nsc_forward with training");
  EXPECT_EQ(nsc_backward_apply(device, stream), NSC_ERROR);
  EXPECT_EQ(nsc_forward(device, &part, 1, NSC_TRAINING, stream), NSC_OK)
      << device.error();
  refuseBackward(1, "the learning rate is not set");
  EXPECT_EQ(nsc_set_step(device, 1.0f / 0.0f, 1, stream), NSC_ERROR);
  EXPECT_EQ(nsc_set_step(device, 0.5f, 1, stream), NSC_OK);
  refuseBackward(2, "expected 1 gradients");
  gradient.gradient = nullptr;
  refuseBackward(1, "its gradient is null");
  gradient.gradient = out[0].data();
  gradient.weight_gradient = out[0].data();
  refuseBackward(1, "does not compute gradients of its sample weights");
  gradient.weight_gradient = nullptr;
  nsc_norms norms;
  EXPECT_EQ(nsc_get_norms(device, 1, &norms), NSC_ERROR);
  EXPECT_EQ(nsc_backward(device, &gradient, 1, stream), NSC_OK)
      << device.error();
  EXPECT_EQ(nsc_get_norms(device, 0, &norms), NSC_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("slot 0 has no norms"));
  ASSERT_EQ(nsc_get_norms(device, 1, &norms), NSC_OK) << device.error();
  theDriver().ctxSynchronize();
  EXPECT_EQ(norms.capacity, 4);
  EXPECT_EQ(norms.run_range[0], 0);
  EXPECT_EQ(norms.run_range[1], 4); // rows 0 ... 3
  refuseBackward(1, "once");
  EXPECT_EQ(nsc_backward_apply(device, stream), NSC_OK);
  EXPECT_EQ(nsc_backward_apply(device, stream), NSC_ERROR);
}

TEST_F(BadIdTest, PlansAreNotUsedAgainWhileTheirSortRuns) {
  // Twelve sorts wait while the caller's stream goes ahead. The first have more
  // blocks than the last, which use their plans again.
  std::vector<int64_t> rows(80, 3);
  DeviceArray<int64_t> many(rows);
  DeviceArray<float> results(size_t(40) * 4);
  OpenDevice device(artifact);
  fake.preferred = stream;
  for (int i = 0; i < 12; ++i) {
    part.bags = 40 - 3 * i;
    part.ids = many.data();
    part.id_end = 2 * part.bags;
    part.out = results.data();
    ASSERT_EQ(nsc_forward(device, &part, 1, NSC_TRAINING, stream), NSC_OK)
        << device.error();
  }
  EXPECT_EQ(nsc_check(device, stream), NSC_OK);
  theDriver().ctxSynchronize();
  EXPECT_THAT(fake.violations, testing::IsEmpty());
}

TEST_F(MistakeTest, NothingToDoIsDone) {
  Model model;
  model.tables = {{6, 8}};
  model.exchanges = {{8, 1, false, {{0, 0}}}};
  model.shards = {{0, 0, 6, 0, 8, 1}};
  model.devices = 2; // the first has nothing
  Artifact two(model, fake);
  part.lookup = 0;
  part.bags = part.id_end = 0;
  part.ids = nullptr;
  nsc_gradient gradient = {};
  for (int32_t d = 0; d < 2; ++d) {
    OpenDevice device(two, d);
    ASSERT_EQ(nsc_set_step(device, 0.5f, 1, stream), NSC_OK);
    for (int32_t training : {0, 1, 2})
      EXPECT_EQ(nsc_forward(device, &part, d, training, stream), NSC_OK)
          << device.error();
    EXPECT_EQ(nsc_backward(device, &gradient, d, stream), NSC_OK)
        << device.error();
    EXPECT_EQ(nsc_backward_apply(device, stream), NSC_OK);
    EXPECT_EQ(nsc_check(device, stream), NSC_OK) << device.error();
  }
}

TEST(CudaDriverTest, MissingDriversSayWhy) {
  theFake(); // a driver is there, but not these
  auto load = [](const char *file) -> std::string {
    try {
      cuda::CudaDriver::load(file);
      return "loaded";
    } catch (const std::exception &error) {
      return error.what();
    }
  };
  EXPECT_THAT(load("/nowhere/libcuda.so.1"),
              testing::AllOf(HasSubstr("no CUDA driver"),
                             HasSubstr("/nowhere/libcuda.so.1"),
                             HasSubstr("NEUROSHARD_CUDA_DRIVER")));
  EXPECT_THAT(load("libm.so.6"), HasSubstr("has no function cuInit"));
  theFake().count = 0;
  EXPECT_THAT(load(FAKE_DRIVER), HasSubstr("finds no GPU"));
  theFake().count = 1;
  EXPECT_EQ(load(FAKE_DRIVER), "loaded");
  EXPECT_EQ(nsc_available(), NSC_OK);
}

} // namespace
} // namespace neuroshard::test
