//===- BuildLookup.cpp - Pass that builds tables and lookups --------------===//

#include "Passes.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {
#define GEN_PASS_DEF_BUILDLOOKUP
#include "Passes.h.inc"
} // namespace neuroshard

using namespace mlir;
using namespace neuroshard;

namespace {

struct BuildLookupPass
    : public neuroshard::impl::BuildLookupBase<BuildLookupPass> {
  using BuildLookupBase::BuildLookupBase;

  void runOnOperation() override {
    auto b = OpBuilder::atBlockBegin(getOperation().getBody());
    Location loc = getOperation().getLoc();
    auto optimizer = ir::OptimizerAttr::get(
        b.getContext(), {.kind = OptimizerKind::RowWiseAdagrad});
    auto user = ir::TableOp::create(b, loc, "user", 1000, 64, b.getF32Type(),
                                    optimizer);
    auto item = ir::TableOp::create(b, loc, "item", 50, 8, b.getF16Type());

    auto dynamic = [](Type element) {
      return RankedTensorType::get({ShapedType::kDynamic}, element);
    };
    Type ids = dynamic(b.getI32Type()), offsets = dynamic(b.getI64Type()),
         weights = dynamic(b.getF32Type());
    auto function = func::FuncOp::create(
        b, loc, "forward",
        b.getFunctionType({ids, offsets, weights}, TypeRange()));
    Block *body = function.addEntryBlock();
    b.setInsertionPointToStart(body);
    Value idsArgument = body->getArgument(0),
          offsetsArgument = body->getArgument(1),
          weightsArgument = body->getArgument(2);
    auto pack =
        ir::PackOp::create(b, loc, {"user", "item"}, {idsArgument, idsArgument},
                           {offsetsArgument, offsetsArgument});
    auto keyed =
        ir::FromKeyedOp::create(b, loc, llvm::StringRef("item"), idsArgument,
                                offsetsArgument, weightsArgument);
    ir::LookupOp::create(b, loc, Pooling::Mean, user, pack, "user");
    ir::LookupOp::create(b, loc, Pooling::Sum, item, keyed, "item")
        .setWeighted(true);
    ir::UnpackOp::create(b, loc, pack, "item");
    ir::UnpackOp::create(b, loc, keyed, "item");
    func::ReturnOp::create(b, loc);
  }
};

} // namespace
