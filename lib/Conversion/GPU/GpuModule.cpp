//===- GpuModule.cpp - GPU module of a device program ---------------------===//
//
// Makes the variants that the program's lookups and slots need, and then the
// kernels that choose among them.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/GPU/GpuModule.h"

#include "GpuKernels.h"

#include "neuroshard/Conversion/Kernels/HostKernels.h"
#include "neuroshard/RuntimeCuda/GpuKernelABI.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <cstddef>

using namespace mlir;

namespace neuroshard {

namespace {
class ProgramBuilder {
public:
  ProgramBuilder(gpu::GPUModuleOp module, const ProgramSpec &program,
                 const GpuProgramOptions &options)
      : module(module), program(program), options(options), lookups(module),
        gradients(module), partials(module), updates(module), reduces(module),
        applies(module), updatesBySums(module) {}

  FailureOr<GpuProgram> run();

private:
  LogicalResult addLookup(const LookupSpec &lookup);
  LogicalResult addPooledVariants(VariantSpec spec, GpuLookup &entry);
  LogicalResult addSlot(const SlotSpec &slot);
  LogicalResult addUpdate(VariantSpec spec, GpuSlot &entry);
  LogicalResult addUpdateBySums(VariantSpec spec, int32_t &number);
  LogicalResult addReplicaUpdate(VariantSpec spec, GpuSlot &entry);
  void createUpdateKernels();
  void createKernels();
  StringRef add(StringRef kernel);

  gpu::GPUModuleOp module;
  const ProgramSpec &program;
  GpuProgramOptions options;
  VariantSet lookups, gradients, partials, updates, reduces, applies,
      updatesBySums;
  GpuProgram result;
};
} // namespace

static LogicalResult make(VariantSet &set, const VariantSpec &spec,
                          int32_t &number, int32_t *itemsPerBlock = nullptr) {
  FailureOr<int64_t> made = set.getOrCreate(spec);
  if (failed(made))
    return failure();
  number = static_cast<int32_t>(*made);
  if (itemsPerBlock)
    *itemsPerBlock =
        static_cast<int32_t>(set.get()[number].shape.itemsPerBlock());
  return success();
}

LogicalResult ProgramBuilder::addPooledVariants(VariantSpec spec,
                                                GpuLookup &entry) {
  spec.isMean = true;
  if (failed(make(lookups, spec, entry.meanVariant)))
    return failure();
  spec.isFixed = true;
  if (failed(make(lookups, spec, entry.fixedMeanVariant)))
    return failure();
  spec.isMean = false;
  return make(lookups, spec, entry.fixedVariant);
}

LogicalResult ProgramBuilder::addLookup(const LookupSpec &lookup) {
  if (lookup.slot < 0 ||
      lookup.slot >= static_cast<int64_t>(program.slots.size()))
    return emitError(module.getLoc())
           << "lookup of slot " << lookup.slot << " in a program of "
           << program.slots.size() << " slots";
  const SlotSpec &slot = program.slots[lookup.slot];
  GpuLookup entry;
  entry.slot = static_cast<int32_t>(lookup.slot);
  entry.idBytes = static_cast<int32_t>(idBytes(lookup.id));
  entry.pooled = lookup.pooled;
  entry.weighted = lookup.weighted;
  entry.output = options.output;
  VariantSpec spec;
  spec.kernel.dim = slot.dim;
  spec.kernel.element = slot.element;
  spec.kernel.id = lookup.id;
  spec.kernel.pooled = lookup.pooled;
  spec.kernel.weighted = lookup.weighted;
  spec.output = options.output;
  if (failed(make(lookups, spec, entry.variant, &entry.itemsPerBlock)))
    return failure();
  if (lookup.pooled && failed(addPooledVariants(spec, entry)))
    return failure();
  if (lookup.weighted && (slot.optimizer || program.hasWeightGradients)) {
    // One body for bags with offsets and bags of one length.
    VariantSpec gradient;
    gradient.kernel = spec.kernel;
    gradient.kernel.kind = KernelKind::WeightGradient;
    if (failed(make(gradients, gradient, entry.gradientVariant,
                    &entry.gradientItemsPerBlock)))
      return failure();
  }
  result.lookups.push_back(entry);
  return success();
}

/// Sums of gradients do not depend on the type of the weights.
static VariantSpec describeSums(KernelKind kind, int64_t dim) {
  VariantSpec spec;
  spec.kernel.kind = kind;
  spec.kernel.dim = dim;
  // Sample weights, and the numbers of ids of a mean.
  spec.kernel.weighted = true;
  return spec;
}

LogicalResult ProgramBuilder::addUpdate(VariantSpec spec, GpuSlot &entry) {
  VariantSpec sums = describeSums(KernelKind::Partial, entry.dim);
  if (failed(make(partials, sums, entry.partialVariant)))
    return failure();
  spec.kernel.weighted = true;
  auto add = [&](KernelKind kind, VariantSet &set, int32_t &number) {
    spec.kernel.kind = kind;
    return make(set, spec, number);
  };
  if (!entry.twoPhase)
    return add(KernelKind::Update, updates, entry.updateVariant);
  if (failed(add(KernelKind::Reduce, reduces, entry.reduceVariant)))
    return failure();
  return add(KernelKind::Apply, applies, entry.applyVariant);
}

/// Factors are in the sums.
LogicalResult ProgramBuilder::addUpdateBySums(VariantSpec spec,
                                              int32_t &number) {
  spec.kernel.kind = KernelKind::Update;
  spec.isBySums = true;
  return make(updatesBySums, spec, number);
}

/// In each step ranks exchange either gradients or sums of rows.
LogicalResult ProgramBuilder::addReplicaUpdate(VariantSpec spec,
                                               GpuSlot &entry) {
  VariantSpec sums = describeSums(KernelKind::RowSums, entry.dim);
  if (failed(make(reduces, sums, entry.rowSumsVariant)) ||
      failed(addUpdateBySums(spec, entry.sumsUpdateVariant)))
    return failure();
  return addUpdate(spec, entry);
}

LogicalResult ProgramBuilder::addSlot(const SlotSpec &slot) {
  GpuSlot entry;
  entry.dim = slot.dim;
  entry.element = slot.element;
  entry.twoPhase = slot.twoPhase;
  if (slot.optimizer) {
    OptimizerStates states = optimizerStates(*slot.optimizer);
    entry.elementStates = states.perElement;
    entry.rowStates = states.perRow;
    VariantSpec spec;
    spec.kernel.dim = slot.dim;
    spec.kernel.element = slot.element;
    spec.kernel.optimizer = *slot.optimizer;
    spec.kernel.tableDim = slot.tableDim;
    auto add = slot.replicated ? &ProgramBuilder::addReplicaUpdate
                               : &ProgramBuilder::addUpdate;
    if (failed((this->*add)(spec, entry)))
      return failure();
    if (failed(make(reduces, describeSums(KernelKind::Reduce, entry.dim),
                    entry.distinctSumsVariant)))
      return failure();
  }
  result.slots.push_back(entry);
  return success();
}

StringRef ProgramBuilder::add(StringRef kernel) {
  result.kernels.push_back(kernel.str());
  return kernel;
}

void ProgramBuilder::createUpdateKernels() {
  createTextKernels(module, add("nsg_ranges"));
  createTextKernels(module, add("nsg_find_places"));
  add("nsg_partials");
  createPartialsKernel(module, partials.get());
  auto create = [&](RunKernel kernel, const VariantSet &set) {
    StringRef name = kernel.name;
    for (auto [number, variant] : llvm::enumerate(set.get())) {
      std::string ofBody = nameOfBody(name.str(), number);
      kernel.name = add(ofBody);
      createRunKernel(module, kernel, variant);
    }
  };
  create({kUpdateKernel}, updates);
  create({kReduceKernel}, reduces);
  create({kApplyKernel}, applies);
  create({kUpdateBySumsKernel, /*hasFewItems=*/true}, updatesBySums);
}

void ProgramBuilder::createKernels() {
  if (!lookups.empty())
    createTaskKernel(module,
                     {add("nsg_lookup"), offsetof(nsg_lookup_task, variant),
                      offsetof(nsg_lookup_task, first_block),
                      offsetof(nsg_lookup_task, items), true},
                     lookups.get());
  if (!gradients.empty())
    createTaskKernel(module,
                     {add("nsg_weight_gradient"),
                      offsetof(nsg_lookup_task, gradient_variant),
                      offsetof(nsg_lookup_task, first_gradient_block),
                      offsetof(nsg_lookup_task, items), false},
                     gradients.get());
  if (updates.empty() && reduces.empty())
    return;
  createTextKernels(module, add("nsg_expand"));
  createUpdateKernels();
}

FailureOr<GpuProgram> ProgramBuilder::run() {
  for (const LookupSpec &lookup : program.lookups)
    if (failed(addLookup(lookup)))
      return failure();
  for (const SlotSpec &slot : program.slots)
    if (failed(addSlot(slot)))
      return failure();
  createKernels();
  SmallVector<StringRef> routing;
  for (const char *kernel : kRoutingKernels)
    routing.push_back(add(kernel));
  createTextKernels(module, routing);
  return std::move(result);
}

FailureOr<GpuProgram> buildGpuModule(ModuleOp parent,
                                     const ProgramSpec &program,
                                     const GpuProgramOptions &options) {
  for (const SlotSpec &slot : program.slots)
    if (isQuantized(slot.element))
      return parent.emitError("tables of ")
             << toString(slot.element)
             << " are served by CPUs alone; for GPUs take f16";
  OpBuilder b = OpBuilder::atBlockEnd(parent.getBody());
  parent->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  b.getUnitAttr());
  auto module = gpu::GPUModuleOp::create(b, parent.getLoc(), kGpuModuleName);
  return ProgramBuilder(module, program, options).run();
}

void registerGpuDialects(DialectRegistry &registry) {
  registerKernelDialects(registry);
  registry.insert<gpu::GPUDialect, NVVM::NVVMDialect>();
}

} // namespace neuroshard
