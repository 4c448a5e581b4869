//===- EmitDiagnostics.cpp - Problems as diagnostics of MLIR --------------===//

#include "neuroshard/Transforms/EmitDiagnostics.h"

using namespace mlir;

LogicalResult
neuroshard::emitDiagnostics(Location loc,
                            const neuroshard::Diagnostics &diagnostics) {
  constexpr size_t kMaxNotes = 20;
  if (diagnostics.empty())
    return emitError(loc, "unknown error");
  InFlightDiagnostic diagnostic = emitError(loc, diagnostics.front().str());
  size_t shown = std::min(diagnostics.size(), kMaxNotes);
  for (size_t i = 1; i < shown; ++i)
    diagnostic.attachNote() << diagnostics[i].str();
  if (shown < diagnostics.size())
    diagnostic.attachNote()
        << "and " << diagnostics.size() - shown << " more errors";
  return diagnostic;
}
