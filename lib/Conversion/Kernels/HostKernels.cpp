//===- HostKernels.cpp - Kernel functions and their signatures ------------===//
//
// Signatures follow Runtime/KernelABI.h. Pointers are memrefs of a static
// shape, as the bare-pointer convention asks for; its number of rows is only an
// upper bound.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Kernels/HostKernels.h"

#include "HostInputs.h"

#include "neuroshard/Dialect/ElementTypes.h"
#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Runtime/KernelABI.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace neuroshard {

namespace {
enum class Access { Read, Write, ReadWrite };

/// Arguments of the kernels of Runtime/KernelABI.h.
enum class Role {
  Weights,
  State0,
  State1,
  State2,
  Ids,
  Offsets,
  Rows,
  Segments,
  GradientOffsets,
  SampleWeights,
  Gradients,
  Out,
  OutStride,
  Reduced,
  Norms,
  StepSize,
  Kept,
  Seed,
  First,
  Second,
  Step,
  History,
  Begin,
  End
};

constexpr std::array<Role, kMaxStates> kStateRoles = {
    Role::State0, Role::State1, Role::State2};

/// Collects the arguments of a kernel: their roles, types and attributes.
class Signature {
public:
  Signature(Builder &b, const KernelSpec &spec) : b(b), spec(spec) {}

  /// Rows of `length` elements as they are stored: padded to 16 bytes.
  void rows(Role role, Type element, int64_t length, Access access) {
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    pointer(role, {kUnbounded, nsrt_row_stride(length, bytes)}, element, access,
            /*alignment=*/16);
  }
  void rows(Role role, Type element, Access access) {
    rows(role, element, spec.dim, access);
  }
  /// Quantized rows are bytes.
  void weights(Access access) {
    if (isQuantized(spec.element))
      return rows(Role::Weights, b.getI8Type(),
                  rowBytes(spec.dim, spec.element), access);
    rows(Role::Weights, typeOf(spec.element, b.getContext()), access);
  }
  void flat(Role role, Type element, Access access = Access::Read) {
    pointer(role, {kUnbounded}, element, access, /*alignment=*/0);
  }
  void states() {
    OptimizerStates kept = optimizerStates(spec.optimizer);
    for (auto [number, role] : llvm::enumerate(kStateRoles))
      if (static_cast<int64_t>(number) < kept.perElement)
        rows(role, b.getF32Type(), Access::ReadWrite);
      else
        flat(role, b.getF32Type(), Access::ReadWrite);
  }
  void scalar(Role role, Type type) { add(role, type, {}); }
  void momentFactors() {
    scalar(Role::First, b.getF32Type());
    scalar(Role::Second, b.getF32Type());
  }
  void stepSize() {
    scalar(Role::StepSize, b.getF32Type());
    scalar(Role::Kept, b.getF32Type());
    scalar(Role::Seed, b.getI32Type());
    momentFactors();
    scalar(Role::Step, b.getF32Type());
  }

  Type idType() const {
    return spec.id == IdType::I32 ? b.getI32Type() : b.getI64Type();
  }

  SmallVector<Role> roles;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;

private:
  void pointer(Role role, ArrayRef<int64_t> shape, Type element, Access access,
               int64_t alignment) {
    NamedAttrList list;
    list.set(LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    if (access == Access::Read)
      list.set(LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
    if (access == Access::Write)
      list.set(LLVM::LLVMDialect::getWriteOnlyAttrName(), b.getUnitAttr());
    if (alignment != 0)
      list.set(LLVM::LLVMDialect::getAlignAttrName(),
               b.getI64IntegerAttr(alignment));
    add(role, MemRefType::get(shape, element), list);
  }

  void add(Role role, Type type, const NamedAttrList &list) {
    roles.push_back(role);
    types.push_back(type);
    attributes.push_back(list.getDictionary(b.getContext()));
  }

  Builder &b;
  const KernelSpec &spec;
};
} // namespace

static Signature makeSignature(Builder &b, const KernelSpec &spec) {
  Signature s(b, spec);
  Type i64 = b.getI64Type(), f32 = b.getF32Type();
  switch (spec.kind) {
  case KernelKind::Lookup:
    s.weights(Access::Read);
    s.flat(Role::Ids, s.idType());
    s.flat(Role::Offsets, i64);
    s.flat(Role::SampleWeights, f32);
    s.flat(Role::Out, f32, Access::Write);
    s.scalar(Role::OutStride, i64);
    break;
  case KernelKind::WeightGradient:
    s.weights(Access::Read);
    s.flat(Role::Ids, s.idType());
    s.flat(Role::GradientOffsets, i64);
    s.flat(Role::Gradients, f32);
    s.flat(Role::Out, f32, Access::Write);
    break;
  case KernelKind::Update:
    s.weights(Access::ReadWrite);
    s.states();
    s.flat(Role::Rows, i64);
    s.flat(Role::Segments, i64);
    s.flat(Role::GradientOffsets, i64);
    s.flat(Role::SampleWeights, f32);
    s.flat(Role::Gradients, f32);
    s.stepSize();
    s.flat(Role::History, f32);
    break;
  case KernelKind::Reduce:
    s.weights(Access::Read);
    s.states();
    s.flat(Role::Rows, i64);
    s.flat(Role::Segments, i64);
    s.flat(Role::GradientOffsets, i64);
    s.flat(Role::SampleWeights, f32);
    s.flat(Role::Gradients, f32);
    s.momentFactors();
    s.rows(Role::Reduced, f32, Access::Write);
    s.flat(Role::Norms, f32, Access::Write);
    break;
  case KernelKind::Apply:
    s.weights(Access::ReadWrite);
    s.states();
    s.flat(Role::Rows, i64);
    s.rows(Role::Reduced, f32, Access::Read);
    s.flat(Role::Norms, f32);
    s.stepSize();
    break;
  case KernelKind::Partial:
  case KernelKind::RowSums:
    llvm_unreachable("not a kernel of the host");
  }
  s.scalar(Role::Begin, i64);
  s.scalar(Role::End, i64);
  return s;
}

namespace {
/// The arguments of a kernel, by role.
class Arguments {
public:
  Arguments(ImplicitLocOpBuilder &b, ArrayRef<Role> roles, ValueRange values)
      : b(b), roles(roles), values(values) {}

  /// Null for a role that the kernel does not have.
  Value get(Role role) const {
    const auto *found = llvm::find(roles, role);
    return found == roles.end() ? Value() : values[found - roles.begin()];
  }
  /// An integer as index; null as in get.
  Value getIndex(Role role) const {
    Value value = get(role);
    if (!value)
      return {};
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  }
  HostItems getItems() const {
    return {getIndex(Role::Begin), getIndex(Role::End)};
  }

private:
  ImplicitLocOpBuilder &b;
  ArrayRef<Role> roles;
  ValueRange values;
};
} // namespace

static void emitLookupBody(const KernelBody &base, const Arguments &arguments) {
  HostLookupArrays arrays;
  arrays.ids = arguments.get(Role::Ids);
  if (base.spec.pooled)
    arrays.offsets = arguments.get(Role::Offsets);
  arrays.sampleWeights = arguments.get(Role::SampleWeights);
  arrays.gradientOffsets = arguments.get(Role::GradientOffsets);
  HostLookupInputs inputs(base.b, arguments.getItems(), arrays);
  LookupBody body{base, inputs};
  body.weights = arguments.get(Role::Weights);
  body.gradients = arguments.get(Role::Gradients);
  body.out = arguments.get(Role::Out);
  body.outStride = arguments.getIndex(Role::OutStride);
  emitBody(body);
}

static void emitUpdateBody(const KernelBody &base, const Arguments &arguments) {
  HostUpdateArrays arrays;
  arrays.rows = arguments.get(Role::Rows);
  arrays.segments = arguments.get(Role::Segments);
  arrays.gradientOffsets = arguments.get(Role::GradientOffsets);
  arrays.sampleWeights = arguments.get(Role::SampleWeights);
  HostUpdateInputs inputs(base.b, arguments.getItems(), arrays);
  UpdateBody body{base, inputs};
  body.weights = arguments.get(Role::Weights);
  int32_t numStates = optimizerStates(base.spec.optimizer).count();
  for (int32_t i = 0; i < numStates; ++i)
    body.states.push_back(arguments.get(kStateRoles[i]));
  body.gradients = arguments.get(Role::Gradients);
  body.stepSize = arguments.get(Role::StepSize);
  if (keepsShare(base.spec.optimizer))
    body.kept = arguments.get(Role::Kept);
  body.seed = arguments.get(Role::Seed);
  body.first = arguments.get(Role::First);
  body.second = arguments.get(Role::Second);
  body.step = arguments.get(Role::Step);
  body.history = arguments.get(Role::History);
  body.reduced = arguments.get(Role::Reduced);
  body.norms = arguments.get(Role::Norms);
  emitBody(body);
}

static func::FuncOp createKernel(ModuleOp module, const KernelSpec &spec,
                                 const RowVectors &shape, StringRef name) {
  auto b = ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
  Signature signature = makeSignature(b, spec);
  auto func = func::FuncOp::create(
      b, name, FunctionType::get(b.getContext(), signature.types, {}));
  func.setPrivate();
  func->setAttr(kBarePointerAttr, b.getUnitAttr());
  func.setAllArgAttrs(signature.attributes);

  Block *entry = func.addEntryBlock();
  b.setInsertionPointToStart(entry);
  RowBuilder rows(b, spec.dim, spec.element, shape);
  KernelBody body{b, rows, spec};
  Arguments arguments(b, signature.roles, entry->getArguments());
  bool isLookup = spec.kind == KernelKind::Lookup ||
                  spec.kind == KernelKind::WeightGradient;
  isLookup ? emitLookupBody(body, arguments) : emitUpdateBody(body, arguments);
  func::ReturnOp::create(b);
  return func;
}

FailureOr<func::FuncOp> getOrCreateKernel(ModuleOp module,
                                          const KernelSpec &spec,
                                          const RowVectors &shape) {
  if (auto problem = findProblem(spec))
    return emitError(module.getLoc()) << *problem;
  if (spec.kind == KernelKind::Partial || spec.kind == KernelKind::RowSums)
    return emitError(module.getLoc(), "the host has no kernel for sums alone");
  std::string name = getKernelName(spec);
  if (Operation *existing = module.lookupSymbol(name)) {
    auto func = dyn_cast<func::FuncOp>(existing);
    if (func && func->hasAttr(kBarePointerAttr))
      return func;
    return existing->emitError()
           << "symbol '" << name << "' is reserved for a kernel";
  }
  return createKernel(module, spec, shape, name);
}

void registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  ub::UBDialect, vector::VectorDialect>();
}

} // namespace neuroshard
