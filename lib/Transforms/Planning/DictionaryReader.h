//===- DictionaryReader.h - Reads neuroshard.planning ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_DICTIONARYREADER_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_DICTIONARYREADER_H

#include "TableIndex.h"
#include "neuroshard/Model/EnumNames.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

namespace neuroshard {

/// Reads a dictionary key by key. A key that is never read is an error, and so
/// is a value of the wrong type.
class DictionaryReader {
public:
  DictionaryReader(mlir::Operation *op, mlir::DictionaryAttr dictionary,
                   const TableIndex &tableOfSymbol)
      : op(op), dictionary(dictionary), tableOfSymbol(tableOfSymbol) {}

  /// `handler(value)` is false for a value that is not as expected; `expected`
  /// says so in the error.
  template <typename Handler>
  void read(llvm::StringRef key, const llvm::Twine &expected, Handler handler) {
    known.insert(key);
    mlir::Attribute value = dictionary.get(key);
    if (value && mlir::succeeded(result) && !handler(value))
      fail(key, value, expected);
  }
  void text(llvm::StringRef key, std::string &out);
  template <typename Int> void integer(llvm::StringRef key, Int &out);
  void integer(llvm::StringRef key, std::optional<int64_t> &out);
  void number(llvm::StringRef key, double &out);
  void table(llvm::StringRef key, int &out);
  void tableSets(llvm::StringRef key, std::vector<std::vector<int>> &out);
  template <typename Enum>
  void name(llvm::StringRef key, Enum &out,
            std::optional<Enum> (*parse)(std::string_view));
  /// A list of dictionaries, each read by `readItem`.
  template <typename ReadItem>
  void items(llvm::StringRef key, ReadItem readItem);
  mlir::LogicalResult finish();

private:
  void fail(llvm::StringRef key, mlir::Attribute value,
            const llvm::Twine &expected) {
    result =
        mlir::emitError(op->getLoc(),
                        "'neuroshard.planning' has an unusable value for '")
        << key << "': " << value << "; expected " << expected;
  }
  std::optional<int> tableOf(mlir::Attribute value) const {
    auto symbol = mlir::dyn_cast<mlir::FlatSymbolRefAttr>(value);
    auto found =
        symbol ? tableOfSymbol.find(symbol.getAttr()) : tableOfSymbol.end();
    if (found == tableOfSymbol.end())
      return std::nullopt;
    return found->second;
  }

  mlir::Operation *op;
  mlir::DictionaryAttr dictionary;
  const TableIndex &tableOfSymbol;
  llvm::StringSet<> known;
  mlir::LogicalResult result = mlir::success();
};

template <typename Int>
void DictionaryReader::integer(llvm::StringRef key, Int &out) {
  read(key, "a number of type i64", [&](mlir::Attribute value) {
    auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value);
    if (!integer || !integer.getType().isInteger(64))
      return false;
    out = static_cast<Int>(integer.getInt());
    return out == integer.getInt();
  });
}

template <typename Enum>
void DictionaryReader::name(llvm::StringRef key, Enum &out,
                            std::optional<Enum> (*parse)(std::string_view)) {
  read(key, choicesOf<Enum>(), [&](mlir::Attribute value) {
    auto string = mlir::dyn_cast<mlir::StringAttr>(value);
    std::optional<Enum> parsed =
        string ? parse(string.getValue()) : std::nullopt;
    out = parsed.value_or(out);
    return parsed.has_value();
  });
}

template <typename ReadItem>
void DictionaryReader::items(llvm::StringRef key, ReadItem readItem) {
  read(key, "a list of dictionaries", [&](mlir::Attribute value) {
    auto list = mlir::dyn_cast<mlir::ArrayAttr>(value);
    for (mlir::Attribute item :
         list ? list.getValue() : mlir::ArrayRef<mlir::Attribute>()) {
      auto entry = mlir::dyn_cast<mlir::DictionaryAttr>(item);
      if (!entry)
        return false;
      DictionaryReader reader(op, entry, tableOfSymbol);
      readItem(reader);
      result = reader.finish();
      if (mlir::failed(result))
        break;
    }
    return static_cast<bool>(list);
  });
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_DICTIONARYREADER_H
