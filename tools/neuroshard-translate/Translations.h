//===- Translations.h - IR to workload and plan JSON, and back --*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_TRANSLATE_TRANSLATIONS_H
#define NEUROSHARD_TOOLS_TRANSLATE_TRANSLATIONS_H

namespace neuroshard {

/// Registers --workload-to-mlir, --mlir-to-workload, --plan-to-json and
/// --json-to-plan, and the options they share.
void registerTranslations();

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_TRANSLATE_TRANSLATIONS_H
