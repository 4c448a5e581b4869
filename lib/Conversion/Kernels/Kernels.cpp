//===- Kernels.cpp - Kernel functions and their signatures ----------------===//
//
// Signatures follow Runtime/KernelABI.h. Pointers are memrefs of a static
// shape, as the bare-pointer convention asks for; the number of rows in it
// only stands for "as many as there are".
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Kernels/Kernels.h"

#include "KernelBody.h"

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
  }
  s.itemRange();
  return s;
}

static void emitBody(const KernelBody &body) {
  switch (body.spec.kind) {
  case KernelKind::Lookup:
    return body.spec.pooled ? emitPooledLookup(body) : emitRowLookup(body);
  case KernelKind::WeightGradient:
    return emitWeightGradient(body);
  case KernelKind::Update:
    return emitUpdate(body);
  case KernelKind::Reduce:
    return emitReduce(body);
  case KernelKind::Apply:
    return emitApply(body);
  }
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
  emitBody({b, rows, spec, entry->getArguments(), begin, end});
  func::ReturnOp::create(b);
  return func;
}

FailureOr<func::FuncOp> getOrCreateKernel(ModuleOp module,
                                          const KernelSpec &spec,
                                          const RowShape &shape) {
  if (auto problem = findProblem(spec))
    return module.emitError() << *problem;
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

void forEachItem(const KernelBody &body,
                 llvm::function_ref<void(Value item)> emit) {
  ImplicitLocOpBuilder &b = body.b;
  Value step = body.rows.index(1);
  auto loop = scf::ParallelOp::create(b, ValueRange{body.begin},
                                      ValueRange{body.end}, ValueRange{step});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  emit(loop.getInductionVars().front());
}

Value loadIndex(ImplicitLocOpBuilder &b, Value memref, Value position) {
  Value element = memref::LoadOp::create(b, memref, position);
  // Ids, rows and offsets are not negative.
  return arith::IndexCastUIOp::create(b, b.getIndexType(), element);
}

Value loadAhead(ImplicitLocOpBuilder &b, Value memref, Value position,
                Value last) {
  Value distance = arith::ConstantIndexOp::create(b, kPrefetchRows);
  Value ahead = arith::AddIOp::create(b, position, distance);
  return loadIndex(b, memref, arith::MinSIOp::create(b, ahead, last));
}

} // namespace neuroshard
