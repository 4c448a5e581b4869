//===- KernelGrid.cpp - All kernels under test, in one library ------------===//
//
// Columns: below, at and above a chunk of 16, with every kind of rest, and
// above a block of 256 with and without a rest.
//
//===----------------------------------------------------------------------===//

#include "KernelGrid.h"

#include "NativeLibrary.h"

#include "neuroshard/Conversion/Kernels/HostKernels.h"
#include "neuroshard/Runtime/KernelABI.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace neuroshard {

static std::vector<Optimizer> getOptimizers() {
  Optimizer sgd{OptimizerKind::SGD};
  Optimizer adagrad{OptimizerKind::Adagrad, /*eps=*/1e-8};
  Optimizer rowwise{OptimizerKind::RowWiseAdagrad, /*eps=*/1e-6};
  Optimizer adam{OptimizerKind::Adam, 1e-8, 0.9, 0.999};
  Optimizer momentum{OptimizerKind::Momentum, 1e-8, /*beta1=*/0.9};
  Optimizer adamw{OptimizerKind::AdamW, 1e-8, 0.9, 0.999};
  Optimizer partial{OptimizerKind::PartialRowWiseAdam, 1e-8, 0.9, 0.999};
  Optimizer rmsprop{OptimizerKind::RowWiseRMSprop, 1e-6, 0.9, 0.99};
  // beta of FTRL is eps; many rows are inside lambda1, many are not.
  Optimizer ftrl{.kind = OptimizerKind::FTRL,
                 .eps = 0.5,
                 .l1Penalty = 1.5,
                 .l2Penalty = 0.25};
  return {sgd, adagrad, rowwise, adam, momentum, adamw, partial, rmsprop, ftrl};
}

static std::vector<Optimizer> getTrustOptimizers() {
  Optimizer lars{.kind = OptimizerKind::LARS, .beta1 = 0.8, .eta = 0.25};
  Optimizer lamb{.kind = OptimizerKind::LAMB, .eps = 1e-3};
  Optimizer partial{.kind = OptimizerKind::PartialRowWiseLAMB, .eps = 1e-3};
  return {lars, lamb, partial};
}

/// Modes of weight decay that an optimizer may have.
static std::vector<WeightDecayMode> getDecayModes(Optimizer optimizer) {
  std::vector<WeightDecayMode> modes;
  for (WeightDecayMode mode :
       {WeightDecayMode::L2, WeightDecayMode::Decoupled}) {
    optimizer.weightDecayMode = mode;
    if (!settingError(optimizer))
      modes.push_back(mode);
  }
  return modes;
}

/// Every way to count rows, and steps before and after adjustment_iter.
static std::vector<Optimizer> getCounterOptimizers() {
  using Mode = WeightDecayMode;
  std::vector<Optimizer> all;
  for (auto [mode, halflife, adjustment] : {std::tuple(Mode::L2, 4.0, -1.0),
                                            {Mode::L2, 2.5, kStep},
                                            {Mode::Decoupled, 4.0, kStep - 1.0},
                                            {Mode::AdagradW, -1.0, -1.0},
                                            {Mode::AdagradW, -2.0, kStep - 3.0},
                                            {Mode::AdagradW, 4.0, kStep},
                                            {Mode::AdagradW, 0.0, 0.0}}) {
    all.push_back({.kind = OptimizerKind::RowWiseAdagradWithCounter,
                   .eps = 1e-3,
                   .weightDecay = 0.5,
                   .weightDecayMode = mode,
                   .counterHalflife = halflife,
                   .adjustmentIter = adjustment,
                   .adjustmentUb = 0.125,
                   .maxGradient = 2});
  }
  all.push_back({.kind = OptimizerKind::RowWiseAdagradWithCounter});
  return all;
}

/// Counted slots, each updated in one phase and then in two.
static void addCounterSlots(ProgramSpec &program, ElementType element,
                            int64_t dim) {
  bool isF32 = element == ElementType::F32;
  if (isF32 ? dim != 1 && dim != 100 && dim != 512
            : dim != (element == ElementType::F16 ? 300 : 100))
    return;
  for (Optimizer optimizer : getCounterOptimizers()) {
    optimizer.stochasticRounding = !isF32;
    for (bool twoPhase : {false, true}) {
      bool weighted = program.slots.size() % 4 < 2;
      program.slots.push_back(
          {dim, element, optimizer, 2 * dim, weighted, twoPhase});
    }
  }
}

/// Slots with trust ratios, each updated in one phase and then in two.
static void addTrustSlots(ProgramSpec &program, ElementType element,
                          int64_t dim) {
  bool isF32 = element == ElementType::F32;
  std::vector<int64_t> dims = {1, 300};
  if (isF32)
    dims = {1, 16, 100, 512};
  if (std::ranges::find(dims, dim) == dims.end())
    return;
  for (Optimizer optimizer : getTrustOptimizers())
    for (double decay : {0.0, 0.125}) {
      if (decay == 0 && !isF32)
        continue;
      optimizer.weightDecay = decay;
      optimizer.maxGradient = decay != 0 ? 2 : 0;
      optimizer.stochasticRounding = !isF32;
      bool weighted = program.slots.size() % 4 < 2;
      for (bool twoPhase : {false, true})
        program.slots.push_back(
            {dim, element, optimizer, 2 * dim, weighted, twoPhase});
    }
}

static std::vector<int64_t> getDims(ElementType element) {
  if (element != ElementType::F32)
    return {1, 10, 64, 100, 300};
  return {1, 2, 3, 4, 10, 16, 48, 64, 100, 128, 192, 512, 1000, 4096};
}

static void addSlots(ProgramSpec &program, ElementType element, int64_t dim) {
  int64_t slot = program.slots.size();
  bool weighted = slot % 2 != 0;
  for (Optimizer optimizer : getOptimizers()) {
    program.slots.push_back({dim, element, optimizer, 0, weighted, false});
    weighted = !weighted;
    optimizer.weightDecay = 0.125;
    optimizer.maxGradient = 2;
    optimizer.stochasticRounding = element != ElementType::F32;
    if (dim != 10 && dim != 300 && dim != 512)
      continue;
    for (WeightDecayMode mode : getDecayModes(optimizer)) {
      optimizer.weightDecayMode = mode;
      program.slots.push_back({dim, element, optimizer, 0, weighted, false});
    }
  }
  // A column shard of a wider table, updated in two phases and in one.
  for (Optimizer rowwise :
       {getOptimizers()[2], getOptimizers()[6], getOptimizers()[7]}) {
    program.slots.push_back({dim, element, rowwise, 2 * dim, weighted, true});
    program.slots.push_back({dim, element, rowwise, 2 * dim, weighted, false});
    rowwise.weightDecay = 0.125;
    rowwise.maxGradient = 2;
    for (WeightDecayMode mode :
         {WeightDecayMode::L2, WeightDecayMode::Decoupled}) {
      rowwise.weightDecayMode = mode;
      program.slots.push_back({dim, element, rowwise, 2 * dim, weighted, true});
    }
  }
  if (program.slots.size() % 2 != 0)
    program.slots.push_back(
        {dim, element, getOptimizers()[0], 0, false, false});
  addTrustSlots(program, element, dim);
  addCounterSlots(program, element, dim);

  IdType narrow = dim % 3 ? IdType::I32 : IdType::I64;
  IdType wide = dim % 3 ? IdType::I64 : IdType::I32;
  program.lookups.push_back({slot, narrow, /*pooled=*/true, false});
  program.lookups.push_back({slot, wide, /*pooled=*/true, /*weighted=*/true});
  program.lookups.push_back({slot, wide, /*pooled=*/false, false});
}

static ProgramSpec makeProgram() {
  ProgramSpec program;
  for (ElementType element :
       {ElementType::F32, ElementType::F16, ElementType::BF16})
    for (int64_t dim : getDims(element))
      addSlots(program, element, dim);
  // A slot that is only read.
  program.slots.push_back({8, ElementType::F32, std::nullopt, 0, false, false});
  program.lookups.push_back({static_cast<int64_t>(program.slots.size()) - 1,
                             IdType::I64, true, false});
  return program;
}

const KernelGrid &getKernelGrid() {
  static const KernelGrid grid = [] {
    mlir::DialectRegistry registry;
    registerKernelDialects(registry);
    mlir::MLIRContext context(registry);
    context.loadAllAvailableDialects();
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    ProgramSpec spec = makeProgram();
    if (failed(buildProgramTable(*module, spec)))
      std::abort();
    static const NativeLibrary library(*module);
    return KernelGrid{spec, static_cast<const nsrt_program *>(
                                library.find(NSRT_PROGRAM_SYMBOL))};
  }();
  return grid;
}

std::string describe(const SlotSpec &slot) {
  static const char *const elements[] = {"f32", "f16", "bf16"};
  std::string text = "dim " + std::to_string(slot.dim) + " " +
                     elements[static_cast<int>(slot.element)];
  if (slot.optimizer)
    text += " " + std::string(toString(slot.optimizer->kind)) +
            (slot.optimizer->weightDecay != 0
                 ? " with decay " +
                       std::string(toString(slot.optimizer->weightDecayMode))
                 : "");
  return text + (slot.weighted ? " weighted" : "") +
         (slot.twoPhase ? " two-phase" : "");
}

} // namespace neuroshard
