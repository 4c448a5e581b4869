//===- GpuInputs.h - Inputs of GPU kernel bodies ----------------*- C++ -*-===//
//
// The inputs of bodies over the structs of RuntimeCuda/GpuKernelABI.h, for one
// item.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_GPUINPUTS_H
#define NEUROSHARD_LIB_CONVERSION_GPU_GPUINPUTS_H

#include "DeviceStruct.h"
#include "KernelBody.h"

namespace neuroshard {

/// The items first, first + step, ... below end.
struct Items {
  mlir::Value first, end;
  int64_t step;
};

/// A lookup or a weight gradient: reads an nsg_lookup_task. Ids are checked.
class TaskInputs : public LookupInputs {
public:
  struct Settings {
    IdType id = IdType::I64;
    bool isPooled = true;
    /// All bags have `pooling` ids.
    bool isFixed = false;
    /// The body runs for each id; flags of the task say whether bags have one
    /// length and are means.
    bool isPerId = false;
    /// Reads the offsets of the next bag while a bag is added up.
    bool readsAhead = false;
    /// Where bad ids are reported, and the number of the task; null: they are
    /// not.
    mlir::Value badId, taskNumber;
  };
  TaskInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &task,
             const Items &items, const Settings &settings);

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  void forEachItems(
      int64_t atOnce,
      llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> emit) override;
  Span getBag(mlir::Value) override { return bag; }
  mlir::Value getId(mlir::Value position) override;
  mlir::Value getSampleWeight(mlir::Value position) override;
  void finishIds() override;
  mlir::Value getGradientOffset(mlir::Value) override { return gradientOffset; }
  mlir::Value getGradientDivisor(mlir::Value) override { return divisor; }

private:
  struct Check {
    mlir::Value isGood;
    mlir::Value position;
  };

  mlir::Value addFirstId(mlir::Value number);
  mlir::Value hasFlag(int32_t flag);
  Span getFixedBag(mlir::Value item);
  Span loadOffsets(mlir::Value item);
  Span loadBag(mlir::Value item);
  void forEachBag(llvm::function_ref<void(mlir::Value)> emit);
  void beginGradients(mlir::Value item);

  mlir::ImplicitLocOpBuilder &b;
  DeviceStruct task;
  Items items;
  Settings settings;
  mlir::Value ids, rows, rowBegin;
  llvm::SmallVector<Check> checks;
  Span bag; ///< The bag of the current item.
  mlir::Value gradientOffset, divisor;
};

/// An update, or a phase of one: reads an nsg_slot and the nsg_sorted.
class RunInputs : public UpdateInputs {
public:
  /// Item i is run `firstRun` + i of the slot or, with `isChunk`, a chunk,
  /// whose run has all of its positions.
  RunInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &slot,
            const DeviceStruct &sorted, mlir::Value item, mlir::Value firstRun,
            bool isChunk)
      : b(b), slot(slot), sorted(sorted), item(item), firstRun(firstRun),
        isChunk(isChunk) {}

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  mlir::Value getRow(mlir::Value item) override;
  Span getRun(mlir::Value item) override;
  std::optional<SplitRun> splitRun(Span run) override;
  mlir::Value getGradientOffset(mlir::Value position) override;
  mlir::Value getFactor(mlir::Value position) override;

private:
  mlir::Value getPosition(mlir::Value place);

  mlir::ImplicitLocOpBuilder &b;
  DeviceStruct slot, sorted;
  mlir::Value item, firstRun;
  bool isChunk;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_GPUINPUTS_H
