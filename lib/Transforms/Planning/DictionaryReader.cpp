//===- DictionaryReader.cpp - Reads neuroshard.planning -------------------===//

#include "DictionaryReader.h"

#include "neuroshard/Support/Printable.h"

using namespace mlir;
using namespace neuroshard;

void DictionaryReader::text(llvm::StringRef key, std::string &out) {
  read(key, "a string", [&](Attribute value) {
    auto string = dyn_cast<StringAttr>(value);
    if (string)
      out = string.str();
    return static_cast<bool>(string);
  });
}

void DictionaryReader::integer(llvm::StringRef key,
                               std::optional<int64_t> &out) {
  if (dictionary.get(key))
    integer(key, out.emplace());
  else
    known.insert(key);
}

void DictionaryReader::number(llvm::StringRef key, double &out) {
  read(key, "a float, such as 0.5", [&](Attribute value) {
    auto number = dyn_cast<FloatAttr>(value);
    if (number)
      out = number.getValueAsDouble();
    return static_cast<bool>(number);
  });
}

void DictionaryReader::table(llvm::StringRef key, int &out) {
  read(key, "the name of a table of the module, such as @user",
       [&](Attribute value) {
         std::optional<int> table = tableOf(value);
         out = table.value_or(0);
         return table.has_value();
       });
}

void DictionaryReader::tableSets(llvm::StringRef key,
                                 std::vector<std::vector<int>> &out) {
  read(key, "a list of lists of tables of the module, such as [[@user, @item]]",
       [&](Attribute value) {
         auto sets = dyn_cast<ArrayAttr>(value);
         for (Attribute set : sets ? sets.getValue() : ArrayRef<Attribute>()) {
           std::vector<int> &tables = out.emplace_back();
           auto members = dyn_cast<ArrayAttr>(set);
           for (Attribute member :
                members ? members.getValue() : ArrayRef<Attribute>()) {
             std::optional<int> table = tableOf(member);
             if (!table)
               return false;
             tables.push_back(*table);
           }
         }
         return static_cast<bool>(sets);
       });
}

LogicalResult DictionaryReader::finish() {
  for (NamedAttribute entry : dictionary)
    if (succeeded(result) && !known.contains(entry.getName()))
      return emitError(op->getLoc(),
                       "'neuroshard.planning' has an unknown key '")
             << printable(entry.getName().getValue()) << "'";
  return result;
}
