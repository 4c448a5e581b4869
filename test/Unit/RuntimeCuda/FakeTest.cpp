//===- FakeTest.cpp - Tests of the C interface on the fake ----------------===//
//
// Loads the fake driver before the runtime asks for one.
//
//===----------------------------------------------------------------------===//

#include "FakeTest.h"

#include <cstdlib>
#include <dlfcn.h>

namespace neuroshard::test {

const cuda::CudaDriver &theDriver() {
  setenv("NEUROSHARD_CUDA_DRIVER", FAKE_DRIVER, 1);
  return cuda::CudaDriver::get();
}

fake::State &theFake() {
  auto *state = reinterpret_cast<decltype(&fakeState)>(
      dlsym(theDriver().library, "fakeState"));
  return *state();
}

OpenDevice::OpenDevice(const Artifact &artifact, int32_t planDevice,
                       const nsc_options *options) {
  nsc_status status =
      nsc_open(artifact.path().c_str(), planDevice, 0, options, &handle);
  EXPECT_EQ(status, NSC_OK) << nsc_last_error(nullptr);
}

FakeTest::FakeTest() {
  fake.reset(static_cast<unsigned>(
      testing::UnitTest::GetInstance()->random_seed() + 1));
  stream = fake.makeStream();
}

FakeTest::~FakeTest() {
  EXPECT_THAT(fake.violations, testing::IsEmpty());
  EXPECT_EQ(fake.contextDepth, 0);
  theDriver().streamDestroy(stream);
}

} // namespace neuroshard::test
