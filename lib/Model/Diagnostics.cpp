//===- Diagnostics.cpp - Errors as values: where, and what is wrong -------===//

#include "neuroshard/Model/Diagnostics.h"

#include "neuroshard/Support/Printable.h"

using namespace neuroshard;

std::string Diagnostic::str() const {
  return withShortWords(
      printable(where.empty() ? message : where + ": " + message));
}

std::string neuroshard::toString(const Diagnostics &diagnostics) {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics) {
    if (!text.empty())
      text += '\n';
    text += diagnostic.str();
  }
  return text;
}
