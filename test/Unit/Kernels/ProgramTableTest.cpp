//===- ProgramTableTest.cpp - The exported table of kernels ---------------===//
//
// The exported table says what the program specification says, kernels are
// emitted once each, and specifications that no kernel can have are refused
// with one error.

#include "ContextWithErrors.h"
#include "KernelGrid.h"

#include "neuroshard/Conversion/Kernels/HostKernels.h"
#include "neuroshard/Model/RowLayout.h"

#include "mlir/IR/OwningOpRef.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

using namespace neuroshard;

namespace {

TEST(ProgramTable, HasEverySlot) {
  const KernelGrid &grid = getKernelGrid();
  ASSERT_EQ(grid.program->version, NSRT_PROGRAM_VERSION);
  ASSERT_EQ(grid.program->num_slots,
            static_cast<int32_t>(grid.spec.slots.size()));
  for (size_t i = 0; i < grid.spec.slots.size(); ++i) {
    const SlotSpec &slot = grid.spec.slots[i];
    const nsrt_slot_entry &entry = grid.program->slots[i];
    SCOPED_TRACE(describe(slot));
    EXPECT_EQ(entry.dim, slot.dim);
    EXPECT_EQ(entry.row_bytes, rowBytes(slot.dim, slot.element));
    EXPECT_EQ(entry.weighted, slot.weighted);
    EXPECT_EQ(entry.update != nullptr, slot.optimizer && !slot.twoPhase);
    EXPECT_EQ(entry.reduce != nullptr, slot.twoPhase);
    EXPECT_EQ(entry.apply != nullptr, slot.twoPhase);
  }
}

TEST(ProgramTable, NamesOptimizerState) {
  const KernelGrid &grid = getKernelGrid();
  std::map<OptimizerKind, std::pair<int, int>> expected = {
      {OptimizerKind::SGD, {0, 0}},
      {OptimizerKind::Adagrad, {1, 0}},
      {OptimizerKind::Adam, {2, 0}},
      {OptimizerKind::RowWiseAdagrad, {0, 1}},
      {OptimizerKind::Momentum, {1, 0}},
      {OptimizerKind::AdamW, {2, 0}},
      {OptimizerKind::RowWiseRMSprop, {0, 1}},
      {OptimizerKind::FTRL, {2, 0}},
      {OptimizerKind::PartialRowWiseAdam, {1, 1}},
      {OptimizerKind::LARS, {1, 0}},
      {OptimizerKind::LAMB, {2, 0}},
      {OptimizerKind::PartialRowWiseLAMB, {1, 1}},
      {OptimizerKind::RowWiseAdagradWithCounter, {0, 3}}};
  for (size_t i = 0; i < grid.spec.slots.size(); ++i) {
    const SlotSpec &slot = grid.spec.slots[i];
    auto [elements, rows] = slot.optimizer ? expected.at(slot.optimizer->kind)
                                           : std::pair<int, int>{0, 0};
    EXPECT_EQ(grid.program->slots[i].state_elements, elements);
    EXPECT_EQ(grid.program->slots[i].state_rows, rows);
  }
}

TEST(ProgramTable, HasEveryLookup) {
  const KernelGrid &grid = getKernelGrid();
  ASSERT_EQ(grid.program->num_lookups,
            static_cast<int32_t>(grid.spec.lookups.size()));
  for (size_t i = 0; i < grid.spec.lookups.size(); ++i) {
    const LookupSpec &lookup = grid.spec.lookups[i];
    const nsrt_lookup_entry &entry = grid.program->lookups[i];
    EXPECT_EQ(entry.slot, lookup.slot);
    EXPECT_EQ(entry.id_bytes, lookup.id == IdType::I32 ? 4 : 8);
    EXPECT_EQ(entry.pooled, lookup.pooled);
    EXPECT_EQ(entry.weighted, lookup.weighted);
    EXPECT_NE(entry.forward, nullptr);
  }
}

/// A module to emit into, and the errors reported for it.
struct ModuleWithErrors : ContextWithErrors {
  ModuleWithErrors() : ContextWithErrors(registerKernelDialects) {
    context.loadAllAvailableDialects();
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  }

  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST(ProgramTable, EmitsEqualKernelsOnce) {
  ModuleWithErrors m;
  Optimizer sgd{OptimizerKind::SGD};
  ProgramSpec program;
  for (int i = 0; i < 3; ++i) {
    program.slots.push_back({64, ElementType::F32, sgd, 0, false, false});
    program.lookups.push_back({i, IdType::I64, true, false});
  }
  ASSERT_TRUE(succeeded(buildProgramTable(*m.module, program)));
  auto kernels = m.module->getOps<mlir::func::FuncOp>();
  EXPECT_EQ(std::distance(kernels.begin(), kernels.end()), 2);
}

TEST(ProgramTable, DifferentConstantsAreDifferentKernels) {
  KernelSpec spec;
  spec.kind = KernelKind::Update;
  spec.dim = 4;
  spec.optimizer = {OptimizerKind::Adagrad, 1e-8};
  std::string name = getKernelName(spec);
  spec.optimizer.eps = 1e-7;
  EXPECT_NE(getKernelName(spec), name);
}

/// The errors of a program of one slot and one lookup.
std::vector<std::string> errorsOf(const SlotSpec &slot,
                                  const LookupSpec &lookup) {
  ModuleWithErrors m;
  EXPECT_TRUE(failed(buildProgramTable(*m.module, {{slot}, {lookup}})));
  return m.errors;
}

using testing::ElementsAre;

TEST(ProgramTable, RefusesWhatNoKernelCanBe) {
  Optimizer adagrad{OptimizerKind::Adagrad, 1e-8};
  Optimizer negative = adagrad;
  negative.eps = -1;
  SlotSpec good{8, ElementType::F32, adagrad, 0, false, false};
  LookupSpec lookup;

  SlotSpec slot = good;
  slot.dim = 0;
  EXPECT_THAT(errorsOf(slot, lookup),
              ElementsAre("kernel dim must be at least 1, got: 0"));
  slot = good;
  slot.twoPhase = true;
  EXPECT_THAT(errorsOf(slot, lookup),
              ElementsAre("a two-phase update needs an optimizer with norms of "
                          "rows, got: adagrad"));
  slot = good;
  slot.optimizer = negative;
  EXPECT_THAT(errorsOf(slot, lookup),
              ElementsAre("optimizer constants must be finite and not "
                          "negative, got: -1.000000"));
  slot = good;
  slot.tableDim = 4;
  EXPECT_THAT(
      errorsOf(slot, lookup),
      ElementsAre("table dim must be at least the kernel dim 8, got: 4"));
  lookup.slot = 1;
  EXPECT_THAT(errorsOf(good, lookup),
              ElementsAre("lookup of slot 1 in a program of 1 slots"));
  lookup = {0, IdType::I64, /*pooled=*/false, /*weighted=*/true};
  EXPECT_THAT(errorsOf(good, lookup),
              ElementsAre("an unpooled lookup cannot be weighted"));
}

} // namespace
