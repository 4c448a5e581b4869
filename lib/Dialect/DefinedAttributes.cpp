//===- DefinedAttributes.cpp - Trait: no attributes but the op's ----------===//

#include "neuroshard/Dialect/DefinedAttributes.h"

#include "neuroshard/Support/ClosestName.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

LogicalResult neuroshard::ir::verifyDefinedAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    llvm::StringRef name = attribute.getName();
    // Passes of MLIR set the visibility of any symbol.
    bool isVisibility = isa<SymbolOpInterface>(op) &&
                        name == SymbolTable::getVisibilityAttrName();
    if (name.contains('.') || isVisibility)
      continue;
    std::vector<std::string> defined;
    for (StringAttr known : op->getName().getAttributeNames())
      defined.push_back(known.str());
    std::string suggestion = didYouMean(name, defined);
    InFlightDiagnostic diagnostic = op->emitOpError("has no attribute '")
                                    << printable(name) << "'" << suggestion;
    if (suggestion.empty() && defined.empty())
      diagnostic << "; one of another dialect needs its prefix";
    else if (suggestion.empty())
      diagnostic << "; it has " << llvm::join(defined, ", ")
                 << ", and one of another dialect needs its prefix";
    return diagnostic;
  }
  return success();
}
