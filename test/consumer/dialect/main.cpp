//===- main.cpp - Parses a table with nothing but NeuroShard::Dialect -----===//

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace neuroshard;

int main() {
  mlir::MLIRContext context;
  context.loadDialect<ir::NeuroShardDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "neuroshard.table @user : 1000 x 16 x f32", &context);
  if (!module)
    return 1;

  auto tables = module->getOps<ir::TableOp>();
  if (tables.empty()) {
    llvm::errs() << "expected the module to hold a table\n";
    return 1;
  }
  ir::TableOp table = *tables.begin();
  llvm::outs() << "@" << table.getSymName() << " has " << table.getRows()
               << " rows of " << table.getDim() << "\n";
  return 0;
}
