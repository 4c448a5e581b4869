//===- TableEdits.cpp - Drop or shrink tables -----------------------------===//

#include "Edits.h"
#include "Zeros.h"

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/RowLayout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace neuroshard;

using ir::LookupOp;
using ir::PinOp;
using ir::ShardOp;
using ir::TableOp;

namespace {

constexpr int64_t kFewRows = 8;

/// The ops of the logical and the planned level that name a table. Where others
/// do, the module without it does not verify.
struct TableUsers {
  explicit TableUsers(TableOp table) {
    StringAttr name = table.getSymNameAttr();
    auto add = [&](auto op, auto &list) {
      if (op.getTableAttr().getAttr() == name)
        list.push_back(op);
    };
    table->getParentOfType<ModuleOp>().walk([&](Operation *op) {
      if (auto lookup = dyn_cast<LookupOp>(op))
        add(lookup, lookups);
      else if (auto shard = dyn_cast<ShardOp>(op))
        add(shard, shards);
      else if (auto pin = dyn_cast<PinOp>(op))
        add(pin, pins);
    });
  }

  SmallVector<LookupOp> lookups;
  SmallVector<ShardOp> shards;
  SmallVector<PinOp> pins;
};

bool names(Attribute value, StringAttr table) {
  auto symbol = dyn_cast<FlatSymbolRefAttr>(value);
  return symbol && symbol.getAttr() == table;
}

/// Without what is said of a table in lists: its name, and dictionaries with
/// its name.
Attribute without(Attribute value, StringAttr table) {
  if (auto list = dyn_cast<ArrayAttr>(value)) {
    SmallVector<Attribute> kept;
    for (Attribute item : list) {
      auto entry = dyn_cast<DictionaryAttr>(item);
      bool isOf = entry && llvm::any_of(entry, [&](NamedAttribute field) {
                    return names(field.getValue(), table);
                  });
      if (!isOf && !names(item, table))
        kept.push_back(without(item, table));
    }
    return ArrayAttr::get(value.getContext(), kept);
  }
  auto entries = dyn_cast<DictionaryAttr>(value);
  if (!entries)
    return value;
  SmallVector<NamedAttribute> kept;
  for (NamedAttribute entry : entries)
    kept.emplace_back(entry.getName(), without(entry.getValue(), table));
  return DictionaryAttr::get(value.getContext(), kept);
}

void dropConstraints(ModuleOp module, StringAttr table) {
  StringRef name = ir::NeuroShardDialect::kPlanningAttrName;
  if (Attribute planning = module->getAttr(name))
    module->setAttr(name, without(planning, table));
}

bool setRows(TableOp table, int64_t rows, RewriterBase &rewriter) {
  int64_t before = table.getRows();
  if (rows >= before)
    return false;
  TableUsers users(table);
  auto scaled = [&](int64_t row) { return row * rows / before; };
  for (ShardOp shard : users.shards)
    if (scaled(shard.getRowBegin()) >= scaled(shard.getRowEnd()))
      return false;
  for (ShardOp shard : users.shards)
    rewriter.modifyOpInPlace(shard, [&] {
      shard.setRowBegin(scaled(shard.getRowBegin()));
      shard.setRowEnd(scaled(shard.getRowEnd()));
    });
  rewriter.modifyOpInPlace(table, [&] { table.setRows(rows); });
  return true;
}

/// Whether only the terminators of functions that nothing calls use a value.
bool isOnlyReturned(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    auto function = dyn_cast<func::FuncOp>(user->getParentOp());
    return isa<func::ReturnOp>(user) && function && isUnnamed(function);
  });
}

bool setColumns(TableOp table, int64_t columns, RewriterBase &rewriter) {
  int64_t before = table.getDim();
  if (columns >= before)
    return false;
  TableUsers users(table);
  auto scaled = [&](int64_t column) {
    return column == before ? columns
                            : column * columns / before / kColumnAlignment *
                                  kColumnAlignment;
  };
  for (ShardOp shard : users.shards)
    if (scaled(shard.getColBegin()) >= scaled(shard.getColEnd()))
      return false;
  if (!llvm::all_of(users.lookups, [](LookupOp lookup) {
        return isOnlyReturned(lookup.getResult());
      }))
    return false;
  for (ShardOp shard : users.shards)
    rewriter.modifyOpInPlace(shard, [&] {
      shard.setColBegin(scaled(shard.getColBegin()));
      shard.setColEnd(scaled(shard.getColEnd()));
    });
  rewriter.modifyOpInPlace(table, [&] { table.setDim(columns); });
  for (LookupOp lookup : users.lookups) {
    auto type = cast<RankedTensorType>(lookup.getResult().getType());
    auto narrow = RankedTensorType::get({type.getDimSize(0), columns},
                                        type.getElementType());
    rewriter.modifyOpInPlace(lookup,
                             [&] { lookup.getResult().setType(narrow); });
    if (auto function = lookup->getParentOfType<func::FuncOp>())
      updateType(function, rewriter);
  }
  return true;
}

/// Half, to the next multiple of the alignment of columns.
int64_t halfOfColumns(int64_t columns) {
  int64_t units = (columns + kColumnAlignment - 1) / kColumnAlignment;
  return (units + 1) / 2 * kColumnAlignment;
}

} // namespace

bool neuroshard::dropTable(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  if (!table)
    return false;
  TableUsers users(table);
  if (!llvm::all_of(users.lookups, [](LookupOp lookup) {
        return hasZeros(lookup.getResult().getType());
      }))
    return false;
  for (LookupOp lookup : users.lookups)
    replaceByZeros(lookup, rewriter);
  for (ShardOp shard : users.shards)
    rewriter.eraseOp(shard);
  for (PinOp pin : users.pins)
    rewriter.eraseOp(pin);
  dropConstraints(table->getParentOfType<ModuleOp>(), table.getSymNameAttr());
  rewriter.eraseOp(table);
  return true;
}

bool neuroshard::joinShards(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  if (!table)
    return false;
  TableUsers users(table);
  if (users.shards.empty())
    return false;
  ShardOp first = users.shards.front();
  auto isInPlanOfFirst = [&](ShardOp shard) {
    return shard->getParentOp() == first->getParentOp();
  };
  if (!llvm::all_of(users.shards, isInPlanOfFirst) ||
      (users.shards.size() == 1 && !first.hasCopies()))
    return false;
  rewriter.modifyOpInPlace(first, [&] {
    first.setRowBegin(0);
    first.setRowEnd(table.getRows());
    first.setColBegin(0);
    first.setColEnd(table.getDim());
    first.setDevices({first.getDevices().front()});
    first.setSyncEvery(0);
  });
  for (ShardOp other : llvm::drop_begin(users.shards))
    rewriter.eraseOp(other);
  return true;
}

bool neuroshard::makeFewRows(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  return table && setRows(table, kFewRows, rewriter);
}

bool neuroshard::halveRows(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  return table && table.getRows() > 1 &&
         setRows(table, table.getRows() / 2, rewriter);
}

bool neuroshard::makeFewColumns(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  return table && setColumns(table, kColumnAlignment, rewriter);
}

bool neuroshard::halveColumns(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  return table && setColumns(table, halfOfColumns(table.getDim()), rewriter);
}

bool neuroshard::dropOptimizer(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  if (!table || !table.getOptimizerAttr())
    return false;
  rewriter.modifyOpInPlace(table, [&] { table.removeOptimizerAttr(); });
  return true;
}

bool neuroshard::dropAccess(Operation *op, RewriterBase &rewriter) {
  auto table = dyn_cast<TableOp>(op);
  if (!table || !table.getAccessAttr())
    return false;
  rewriter.modifyOpInPlace(table, [&] { table.removeAccessAttr(); });
  return true;
}
