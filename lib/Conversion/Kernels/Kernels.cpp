//===- Kernels.cpp - Kernel functions and their signatures ----------------===//
//
// Signatures follow Runtime/KernelABI.h. Pointers are memrefs of a static
// shape, as the bare-pointer convention asks for; the number of rows in it
// only stands for "as many as there are".
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Kernels/Kernels.h"

#include "HostInputs.h"

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

/// More elements of any array than a machine's memory holds.
static constexpr int64_t kUnbounded = int64_t(1) << 40;

namespace {
enum class Access { Read, Write, ReadWrite };

/// Collects argument types and their attributes.
class Signature {
public:
  Signature(Builder &b, const KernelSpec &spec) : b(b), spec(spec) {}

  /// Rows of the shard as they are stored: padded to 16 bytes.
  void rows(Type element, Access access) {
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    pointer({kUnbounded, nsrt_row_stride(spec.dim, bytes)}, element, access,
            /*alignment=*/16);
  }
  void weights(Access access) { rows(elementType(), access); }
  void flat(Type element, Access access = Access::Read) {
    pointer({kUnbounded}, element, access, /*alignment=*/0);
  }
  void state(int32_t number) {
    OptimizerKind kind = spec.optimizer.kind;
    if (number < getNumElementStates(kind))
      return rows(b.getF32Type(), Access::ReadWrite);
    flat(b.getF32Type(), Access::ReadWrite);
  }
  void scalar(Type type) { add(type, {}); }
  void itemRange() {
    scalar(b.getI64Type());
    scalar(b.getI64Type());
  }

  Type idType() const {
    return spec.id == IdKind::I32 ? b.getI32Type() : b.getI64Type();
  }

  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;

private:
  Type elementType() const {
    switch (spec.element) {
    case ElementKind::F32:
      return b.getF32Type();
    case ElementKind::F16:
      return b.getF16Type();
    case ElementKind::BF16:
      return b.getBF16Type();
    }
    return {};
  }

  void pointer(ArrayRef<int64_t> shape, Type element, Access access,
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
    add(MemRefType::get(shape, element), list);
  }

  void add(Type type, const NamedAttrList &list) {
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
    s.flat(s.idType());
    s.flat(i64); // offsets
    s.flat(f32); // sample weights
    s.flat(f32, Access::Write);
    s.scalar(i64); // stride of the output
    break;
  case KernelKind::WeightGradient:
    s.weights(Access::Read);
    s.flat(s.idType());
    s.flat(i64); // gradient offsets
    s.flat(f32); // gradients
    s.flat(f32, Access::Write);
    break;
  case KernelKind::Update:
    s.weights(Access::ReadWrite);
    s.state(0);
    s.state(1);
    s.flat(i64); // rows
    s.flat(i64); // segments
    s.flat(i64); // gradient offsets
    s.flat(f32); // sample weights
    s.flat(f32); // gradients
    s.scalar(f32);
    break;
  case KernelKind::Reduce:
    s.flat(i64); // segments
    s.flat(i64); // gradient offsets
    s.flat(f32); // sample weights
    s.flat(f32); // gradients
    s.rows(f32, Access::Write);
    s.flat(f32, Access::Write);
    break;
  case KernelKind::Apply:
    s.weights(Access::ReadWrite);
    s.state(0);
    s.flat(i64); // rows
    s.rows(f32, Access::Read);
    s.flat(f32); // norms
    s.scalar(f32);
    break;
  case KernelKind::Partial:
    llvm_unreachable("not a kernel of the host");
  }
  s.itemRange();
  return s;
}

/// The arguments of the function, in the order of makeSignature, and the items
/// [begin, end).
static KernelBody bindArguments(ImplicitLocOpBuilder &b, RowBuilder &rows,
                                const KernelSpec &spec, KernelInputs &inputs,
                                ValueRange arguments) {
  KernelBody body{b, rows, spec, inputs};
  switch (spec.kind) {
  case KernelKind::Lookup:
    body.weights = arguments[0];
    body.out = arguments[4];
    body.outStride =
        arith::IndexCastOp::create(b, b.getIndexType(), arguments[5]);
    break;
  case KernelKind::WeightGradient:
    body.weights = arguments[0];
    body.gradients = arguments[3];
    body.out = arguments[4];
    break;
  case KernelKind::Update:
    body.weights = arguments[0];
    for (int32_t i = 0; i < getNumElementStates(spec.optimizer.kind) +
                                getNumRowStates(spec.optimizer.kind);
         ++i)
      body.states.push_back(arguments[1 + i]);
    body.gradients = arguments[7];
    body.stepSize = arguments[8];
    break;
  case KernelKind::Reduce:
    body.gradients = arguments[3];
    body.reduced = arguments[4];
    body.norms = arguments[5];
    break;
  case KernelKind::Apply:
    body.weights = arguments[0];
    body.states.push_back(arguments[1]);
    body.reduced = arguments[3];
    body.norms = arguments[4];
    body.stepSize = arguments[5];
    break;
  case KernelKind::Partial:
    llvm_unreachable("not a kernel of the host");
  }
  return body;
}

static HostArrays bindArrays(const KernelSpec &spec, ValueRange arguments,
                             Value begin, Value end) {
  HostArrays arrays;
  arrays.begin = begin;
  arrays.end = end;
  switch (spec.kind) {
  case KernelKind::Lookup:
    arrays.ids = arguments[1];
    if (spec.pooled)
      arrays.offsets = arguments[2];
    arrays.sampleWeights = arguments[3];
    break;
  case KernelKind::WeightGradient:
    arrays.ids = arguments[1];
    arrays.gradientOffsets = arguments[2];
    break;
  case KernelKind::Update:
    arrays.rows = arguments[3];
    arrays.segments = arguments[4];
    arrays.gradientOffsets = arguments[5];
    arrays.sampleWeights = arguments[6];
    break;
  case KernelKind::Reduce:
    arrays.segments = arguments[0];
    arrays.gradientOffsets = arguments[1];
    arrays.sampleWeights = arguments[2];
    break;
  case KernelKind::Apply:
    arrays.rows = arguments[2];
    break;
  case KernelKind::Partial:
    llvm_unreachable("not a kernel of the host");
  }
  return arrays;
}

static func::FuncOp createKernel(ModuleOp module, const KernelSpec &spec,
                                 const RowShape &shape, StringRef name) {
  auto b = ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody());
  Signature signature = makeSignature(b, spec);
  auto func = func::FuncOp::create(
      b, name, FunctionType::get(b.getContext(), signature.types, {}));
  func.setPrivate();
  func->setAttr(kBarePointerAttr, b.getUnitAttr());
  func.setAllArgAttrs(signature.attributes);

  Block *entry = func.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  };
  unsigned numArguments = entry->getNumArguments();
  Value begin = toIndex(entry->getArgument(numArguments - 2));
  Value end = toIndex(entry->getArgument(numArguments - 1));
  RowBuilder rows(b, spec.dim, shape);
  HostInputs inputs(b, bindArrays(spec, entry->getArguments(), begin, end));
  emitBody(bindArguments(b, rows, spec, inputs, entry->getArguments()));
  func::ReturnOp::create(b);
  return func;
}

FailureOr<func::FuncOp> getOrCreateKernel(ModuleOp module,
                                          const KernelSpec &spec,
                                          const RowShape &shape) {
  if (auto problem = findProblem(spec))
    return module.emitError() << *problem;
  if (spec.kind == KernelKind::Partial)
    return module.emitError("the host has no kernel for partial sums");
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
