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

#include <functional>

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

/// Gradients at sorted positions: reads the nsg_sorted.
class SortedInputs : public UpdateInputs {
public:
  SortedInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &slot,
               const DeviceStruct &sorted)
      : b(b), slot(slot), sorted(sorted) {}

  mlir::Value getGradientOffset(mlir::Value position) override;
  mlir::Value getFactor(mlir::Value position) override;

protected:
  mlir::Value getPosition(mlir::Value place);
  /// The offset of the gradient of a position.
  mlir::Value getOffsetAt(mlir::Value position);

  mlir::ImplicitLocOpBuilder &b;
  DeviceStruct slot, sorted;
};

/// An update, or a phase of one. Item i is run `firstRun` + i of the slot. Of
/// `runs` the first is taken or, if they are short, all: then what a run begins
/// with is read while the one before is added up.
class RunInputs : public SortedInputs {
public:
  RunInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &slot,
            const DeviceStruct &sorted, const Items &runs, mlir::Value firstRun,
            bool areShort)
      : SortedInputs(b, slot, sorted), runs(runs), firstRun(firstRun),
        areShort(areShort) {}

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override;
  mlir::Value getRow(mlir::Value) override { return row; }
  Span getRun(mlir::Value) override { return run; }
  std::optional<SplitRun> splitRun(Span run) override;
  mlir::Value getFirstGradientOffset() override { return firstOffset; }
  llvm::SmallVector<mlir::Value> emitReadsAhead() override {
    return readAhead();
  }
  void setReadAhead(mlir::ValueRange values) override {
    ahead.assign(values.begin(), values.end());
  }

private:
  void forEachAhead(llvm::function_ref<void(mlir::Value)> emit);
  mlir::Value loadRow(mlir::Value number);
  mlir::Value loadStart(mlir::Value number);

  Items runs;
  mlir::Value firstRun;
  bool areShort;
  // Of the current item, and of the next.
  mlir::Value row, firstOffset;
  Span run;
  llvm::SmallVector<mlir::Value> ahead;
  std::function<llvm::SmallVector<mlir::Value>()> readAhead;
};

/// The sum of a chunk, the item, whose positions end before `limit`.
class ChunkInputs : public SortedInputs {
public:
  ChunkInputs(mlir::ImplicitLocOpBuilder &b, const DeviceStruct &slot,
              const DeviceStruct &sorted, mlir::Value chunk, mlir::Value limit)
      : SortedInputs(b, slot, sorted), chunk(chunk), limit(limit) {}

  void forEachItem(llvm::function_ref<void(mlir::Value)> emit) override {
    emit(chunk);
  }
  mlir::Value getRow(mlir::Value) override { return {}; }
  Span getRun(mlir::Value chunk) override;

private:
  mlir::Value chunk, limit;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_GPUINPUTS_H
