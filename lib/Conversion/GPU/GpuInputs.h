//===- GpuInputs.h - What a GPU's kernel bodies read -----------*- C++ -*-===//
//
// The inputs of bodies over the structs of Runtime/GpuABI.h, for one item.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_GPUINPUTS_H
#define NEUROSHARD_LIB_CONVERSION_GPU_GPUINPUTS_H

#include "DeviceStruct.h"
#include "KernelBody.h"

namespace neuroshard {

/// A lookup or a weight gradient: reads an nsg_lookup_task. Ids are checked.
class TaskInputs : public LookupInputs {
public:
  struct Settings {
    IdKind id = IdKind::I64;
    bool isPooled = true;
    /// All bags have `pooling` ids.
    bool isFixed = false;
    /// The body is emitted for each id of the item's bag.
    bool isPerId = false;
    /// Where bad ids are reported, and the number of the task; null: nowhere.
    mlir::Value badId, taskNumber;
  };
  TaskInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &task,
             mlir::Value item, const Settings &settings);

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  Span getBag(mlir::Value item) override;
  mlir::Value getId(mlir::Value position) override;
  mlir::Value getSampleWeight(mlir::Value position) override;
  void finishIds() override;
  mlir::Value getGradientOffset(mlir::Value position) override;

private:
  struct Check {
    mlir::Value isGood;
    mlir::Value position;
  };

  mlir::Value addFirstId(mlir::Value number);

  mlir::ImplicitLocOpBuilder &b;
  DeviceStruct task;
  mlir::Value item;
  Settings settings;
  mlir::Value ids, rows, rowBegin;
  llvm::SmallVector<Check> checks;
};

/// An update, or a phase of one: reads an nsg_slot and the nsg_sorted.
class RunInputs : public UpdateInputs {
public:
  /// `item` counts the slot's runs; the first of them is run `firstRun`. Or it
  /// is a chunk, whose "run" is all of its positions.
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
