//===- DeviceTest.cpp - Opening artifacts, tables, memory ----------------===//
//
// The C interface but for its steps. Each mistake has one message that names
// it.
//
//===----------------------------------------------------------------------===//

#include "DeviceFixture.h"
#include "neuroshard/Artifact/ArtifactFile.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/BackendLibrary.h"
#include "neuroshard/Runtime/Initializer.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include <dlfcn.h>
#include <sys/stat.h>

namespace neuroshard::test {
namespace {

using testing::HasSubstr;
using testing::Not;

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
  EXPECT_EQ(slot.state_stride[0], 1);
  EXPECT_EQ(slot.weight_bytes, 5 * 16);
  EXPECT_EQ(slot.num_states, 1);
  EXPECT_EQ(slot.num_row_states, 1);
  EXPECT_EQ(slot.state_bytes[0], 5 * 4);
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
  Manifest manifest = parseManifest(smallModel().manifest().dump());
  runtime::TableInitializer expected(manifest.tables[1], 42);
  std::vector<float> values(5);
  ASSERT_EQ(nsc_read_weights(device, 2, 0, 5, values.data()), NSC_OK);
  for (int64_t row = 0; row < 5; ++row)
    EXPECT_EQ(values[static_cast<size_t>(row)], expected.value(row, 2));
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
  nsc_slot_memory slots[] = {
      {first.data(), nullptr, nullptr, nullptr},
      {second.data(), states.data(), nullptr, nullptr},
      {third.data(), states.data() + 8, nullptr, nullptr}};
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
  EXPECT_THAT(openError(), HasSubstr("expected \"nsg_update_"));
}

TEST_F(DeviceTest, AnArtifactForCpusAloneSaysSo) {
  nlohmann::json manifest = artifact.read("manifest.json");
  manifest.erase("xxh3");
  manifest["files"].erase("program0.gpu.json");
  artifact.write("manifest.json", sealManifest(manifest.dump()));
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
    EXPECT_THAT(
        openError(),
        testing::AllOf(
            HasSubstr("new.cubin' is not the file that manifest.json was "
                      "written with"),
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
  EXPECT_EQ(hashOf(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hashOf("NeuroShard"), hashOf("NeuroShard"));
  EXPECT_NE(hashOf("NeuroShard"), hashOf("Neuroshard"));
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

TEST_F(DeviceTest, MemoryThatTheCallerKeepsIsAskedFor) {
  std::unique_ptr<runtime::BackendFactory> backends(nsc_make_backends(
      artifact.path().c_str(), nullptr, 0, runtime::IdCheck::Early));
  int asked = 0;
  int64_t given = 0;
  backends->whenFull([&] {
    ++asked;
    fake.freeBytes += given;
  });
  std::shared_ptr<runtime::DeviceMemory> memory = backends->makeMemory(0);
  fake.freeBytes = 100;
  EXPECT_THROW(memory->allocate(1000), RuntimeError);
  EXPECT_EQ(asked, 1);
  given = 1000;
  std::byte *block = memory->allocate(1000);
  EXPECT_EQ(asked, 2);
  memory->free(block);
}

TEST_F(DeviceTest, AStepWithoutMemoryFailsAndTheNextWorks) {
  Simulation simulation(smallModel(), 3);
  StepCase step = simulation.partStep(0);
  std::vector<nsc_part> parts = step.raw();
  auto count = static_cast<int32_t>(parts.size());
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
  EXPECT_EQ(nsc_forward(device, parts.data(),
                        static_cast<int32_t>(parts.size()), NSC_INFERENCE,
                        stream),
            NSC_CUDA_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("launching nsg_lookup: "));
  fake.failingCall = "nsg_sort";
  EXPECT_EQ(nsc_forward(device, parts.data(),
                        static_cast<int32_t>(parts.size()), NSC_TRAINING,
                        stream),
            NSC_CUDA_ERROR);
  EXPECT_THAT(device.error(), HasSubstr("sorting ids"));
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
