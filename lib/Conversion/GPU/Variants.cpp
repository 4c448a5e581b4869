//===- Variants.cpp - Specialised bodies of a GPU's kernels ---------------===//

#include "Variants.h"

#include "DistributeOverLanes.h"
#include "GpuInputs.h"
#include "SumInputs.h"

#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Runtime/KernelABI.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cstddef>
#include <memory>

using namespace mlir;

namespace neuroshard {

/// Most columns per lane for which an update reads ahead.
static constexpr int64_t kFewColumns = 4;

/// Names of bodies with f32 results have no suffix.
static std::string getSuffix(ElementType output) {
  if (output == ElementType::F32)
    return "";
  return "_to_" + std::string(toString(output));
}

static std::string getName(const VariantSpec &spec) {
  std::string name = getKernelName(spec.kernel);
  if (spec.isMean)
    name += "_mean";
  if (spec.isFixed)
    name += "_fixed";
  if (spec.isBySums)
    name += "_by_sums";
  if (spec.areShort)
    name += "_short";
  return name + getSuffix(spec.output);
}

/// Rows of the slot's dim, padded to 16 bytes.
static MemRefType getPaddedType(Builder &b, const KernelSpec &spec,
                                ElementType element) {
  int64_t bytes = elementBytes(element);
  return getRowsType(typeOf(element, b.getContext()),
                     nsrt_row_stride(spec.dim, bytes));
}

static bool readsTasks(const KernelSpec &spec) {
  return spec.kind == KernelKind::Lookup ||
         spec.kind == KernelKind::WeightGradient;
}

namespace {
/// Makes one device function on whole rows.
class VariantBuilder {
public:
  VariantBuilder(gpu::GPUModuleOp module, const VariantSpec &spec,
                 const LaneShape &shape)
      : b(ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody())),
        spec(spec), shape(shape) {}

  func::FuncOp run();

private:
  func::FuncOp createFunction(ArrayRef<Type> types);
  void emitTaskBody(ValueRange arguments);
  std::unique_ptr<UpdateInputs> makeUpdateInputs(ValueRange arguments);
  void emitRunBody(ValueRange arguments);
  void bindStates(DeviceStruct &slot, UpdateBody &body);
  void bindTable(DeviceStruct &slot, UpdateBody &body);

  ImplicitLocOpBuilder b;
  const VariantSpec &spec;
  const LaneShape &shape;
};
} // namespace

func::FuncOp VariantBuilder::createFunction(ArrayRef<Type> types) {
  auto func = func::FuncOp::create(
      b, getName(spec), FunctionType::get(b.getContext(), types, {}));
  func.setPrivate();
  b.setInsertionPointToStart(func.addEntryBlock());
  return func;
}

func::FuncOp VariantBuilder::run() {
  Type pointer = getDevicePointerType(b.getContext());
  Type index = b.getIndexType(), i32 = b.getI32Type();
  func::FuncOp func;
  if (readsTasks(spec.kernel)) {
    func = createFunction({pointer, index, index, index, i32, index, pointer});
    emitTaskBody(func.getArguments());
  } else {
    func = createFunction({pointer, pointer, index, index, index, index, i32});
    emitRunBody(func.getArguments());
  }
  func::ReturnOp::create(b);
  return func;
}

void VariantBuilder::emitTaskBody(ValueRange arguments) {
  DeviceStruct task(b, arguments[kTask]);
  Items items{arguments[kTaskItem], arguments[kTaskEnd], shape.itemsPerBlock()};
  bool isLookup = spec.kernel.kind == KernelKind::Lookup;
  TaskInputs::Settings settings;
  settings.id = spec.kernel.id;
  settings.isPooled = spec.kernel.pooled;
  settings.isFixed = spec.isFixed;
  settings.isPerId = !isLookup;
  // Rows of several blocks have enough loads in flight. Neither they nor
  // weighted lookups have registers to spare.
  settings.readsAhead = spec.kernel.dim <= shape.rows.block &&
                        !(isLookup && spec.kernel.weighted);
  settings.badId = isLookup ? arguments[kBadId] : Value();
  settings.taskNumber = arguments[kTaskNumber];
  TaskInputs inputs(b, task, items, settings);
  RowBuilder rows(b, spec.kernel.dim, spec.kernel.element, shape.rows);
  LookupBody body{{b, rows, spec.kernel}, inputs};
  body.isMean = spec.isMean;
  body.weights = task.array(offsetof(nsg_lookup_task, weights),
                            getPaddedType(b, spec.kernel, spec.kernel.element),
                            /*invariant=*/true);
  if (isLookup) {
    body.out = task.array(offsetof(nsg_lookup_task, out),
                          getFlatType(typeOf(spec.output, b.getContext())),
                          /*invariant=*/false);
    body.outStride = task.index(offsetof(nsg_lookup_task, out_stride));
  } else {
    body.gradients = task.array(offsetof(nsg_lookup_task, gradients),
                                getFlatType(b.getF32Type()),
                                /*invariant=*/true);
    body.out = task.array(offsetof(nsg_lookup_task, weight_gradient),
                          getFlatType(b.getF32Type()), /*invariant=*/false);
  }
  emitBody(body);
}

void VariantBuilder::bindStates(DeviceStruct &slot, UpdateBody &body) {
  const size_t offsets[] = {offsetof(nsg_slot, state0),
                            offsetof(nsg_slot, state1),
                            offsetof(nsg_slot, state2)};
  static_assert(std::size(offsets) == kMaxStates);
  OptimizerStates states = optimizerStates(spec.kernel.optimizer);
  for (int32_t i = 0; i < states.count(); ++i) {
    MemRefType type = states.isPerRow(i)
                          ? getFlatType(b.getF32Type())
                          : getPaddedType(b, spec.kernel, ElementType::F32);
    body.states.push_back(slot.array(offsets[i], type, /*invariant=*/false));
  }
}

std::unique_ptr<UpdateInputs>
VariantBuilder::makeUpdateInputs(ValueRange arguments) {
  DeviceStruct slot(b, arguments[kSlot]), sorted(b, arguments[kSorted]);
  Value item = arguments[kRunItem];
  if (spec.isBySums)
    return std::make_unique<SumInputs>(b, slot, item);
  if (spec.kernel.kind == KernelKind::Partial)
    return std::make_unique<ChunkInputs>(b, slot, sorted, item,
                                         arguments[kRunEnd]);
  Items items{item, arguments[kRunEnd], 1};
  return std::make_unique<RunInputs>(b, slot, sorted, items,
                                     arguments[kFirstRun], spec.areShort);
}

void VariantBuilder::emitRunBody(ValueRange arguments) {
  DeviceStruct slot(b, arguments[kSlot]), sorted(b, arguments[kSorted]);
  std::unique_ptr<UpdateInputs> inputs = makeUpdateInputs(arguments);
  RowBuilder rows(b, spec.kernel.dim, spec.kernel.element, shape.rows);
  UpdateBody body{{b, rows, spec.kernel}, *inputs};
  bool isPartial = spec.kernel.kind == KernelKind::Partial;
  bool isApply = spec.kernel.kind == KernelKind::Apply;
  bool isReduce = spec.kernel.kind == KernelKind::Reduce ||
                  spec.kernel.kind == KernelKind::RowSums;
  MemRefType flat = getFlatType(b.getF32Type());
  MemRefType padded = getPaddedType(b, spec.kernel, ElementType::F32);
  if (spec.isBySums)
    body.gradients = slot.array(offsetof(nsg_slot, reduced), padded,
                                /*invariant=*/true);
  else if (!isApply)
    body.gradients = sorted.array(offsetof(nsg_sorted, gradients), flat,
                                  /*invariant=*/true);
  if (isReduce || isApply) {
    body.reduced = slot.array(offsetof(nsg_slot, reduced), padded, isApply);
    body.norms = slot.array(offsetof(nsg_slot, norms), flat, isApply);
  }
  if (isPartial) {
    body.partials = sorted.array(offsetof(nsg_sorted, partials), flat,
                                 /*invariant=*/false);
    body.partialStride = sorted.index(offsetof(nsg_sorted, partial_stride));
  }
  bool readsTable =
      isReduce ? reduceReadsTable(spec.kernel.optimizer) : !isPartial;
  if (readsTable)
    bindTable(slot, body);
  emitBody(body);
}

/// The table, and what its step takes; of two phases either may need all.
void VariantBuilder::bindTable(DeviceStruct &slot, UpdateBody &body) {
  body.weights =
      slot.array(offsetof(nsg_slot, weights),
                 getPaddedType(b, spec.kernel, spec.kernel.element), false);
  bindStates(slot, body);
  const Optimizer &optimizer = spec.kernel.optimizer;
  bool hasTrustRatio = propertiesOf(optimizer.kind).hasTrustRatio;
  DeviceStruct factors(b, slot.pointer(offsetof(nsg_slot, step_size)));
  auto load = [&](int64_t number, Type type) {
    return factors.load(number * sizeof(float), type);
  };
  Type f32 = b.getF32Type();
  body.stepSize = load(0, f32);
  if (keepsShare(optimizer))
    body.kept = load(1, f32);
  if (optimizer.stochasticRounding)
    body.seed = load(2, b.getI32Type());
  if (hasTrustRatio) {
    body.first = load(3, f32);
    body.second = load(4, f32);
  }
  if (propertiesOf(optimizer.kind).hasCounters || optimizer.catchUp)
    body.step = load(5, f32);
  if (optimizer.catchUp)
    body.history = factors.array(6 * sizeof(float), getFlatType(f32),
                                 /*invariant=*/true);
}

/// Registers go to columns, to the sample weights of rows in flight, or to
/// their products with a gradient.
static bool isLarge(const KernelSpec &spec, const LaneShape &shape) {
  constexpr int64_t kManyColumns = 8;
  if (shape.columns > kManyColumns)
    return true;
  if (spec.kind == KernelKind::Lookup)
    return spec.weighted;
  return spec.kind == KernelKind::WeightGradient &&
         shape.columns >= kManyColumns;
}

/// Wider lanes have no registers for what is read ahead.
static bool mayBeShort(const VariantSpec &spec, const LaneShape &shape) {
  bool readsRuns = spec.kernel.kind == KernelKind::Update ||
                   spec.kernel.kind == KernelKind::Reduce ||
                   spec.kernel.kind == KernelKind::RowSums;
  return readsRuns && !spec.isBySums && shape.columns <= kFewColumns;
}

func::FuncOp VariantSet::create(const VariantSpec &spec,
                                const LaneShape &shape) {
  func::FuncOp whole = VariantBuilder(module, spec, shape).run();
  Lanes lanes;
  lanes.count = shape.lanes;
  lanes.columns = spec.kernel.dim;
  bool ofTask = readsTasks(spec.kernel);
  lanes.laneArgument = ofTask ? static_cast<unsigned>(kTaskLane)
                              : static_cast<unsigned>(kRunLane);
  lanes.maskArgument = ofTask ? static_cast<unsigned>(kTaskMask)
                              : static_cast<unsigned>(kRunMask);
  markForLanes(whole, lanes);
  return whole;
}

FailureOr<int64_t> VariantSet::getOrCreate(const VariantSpec &spec) {
  if (auto problem = findProblem(spec.kernel))
    return emitError(module.getLoc()) << *problem;
  std::string name = getName(spec);
  if (auto found = numberOfName.find(name); found != numberOfName.end())
    return found->second;
  LaneShape shape = getLaneShape(spec.kernel.dim, spec.kernel.element);
  if (spec.isBySums)
    shape.rows.inFlight = 1;
  int64_t number = static_cast<int64_t>(variants.size());
  Variant variant{create(spec, shape), {}, shape, isLarge(spec.kernel, shape)};
  if (mayBeShort(spec, shape)) {
    VariantSpec several = spec;
    several.areShort = true;
    variant.ofShortRuns = create(several, shape);
  }
  variants.push_back(variant);
  numberOfName[name] = number;
  return number;
}

} // namespace neuroshard
