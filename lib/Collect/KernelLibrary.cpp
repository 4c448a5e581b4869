//===- KernelLibrary.cpp - Kernels compiled for this machine --------------===//
//
// A program table of many slots, in libraries of bounded size: the time to
// compile one grows faster than its size.
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"

#include "neuroshard/Conversion/Kernels/HostKernels.h"
#include "neuroshard/Conversion/Kernels/ProgramTable.h"
#include "neuroshard/Conversion/Native/Pipeline.h"
#include "neuroshard/Conversion/Native/SharedLibrary.h"
#include "neuroshard/Runtime/KernelABI.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <dlfcn.h>

namespace neuroshard::collect {
namespace {

constexpr size_t kKernelsPerLibrary = 64;

/// With default hyperparameters, which do not change the time.
Optimizer optimizerOf(const std::string &name) {
  return {.kind = parseOptimizerKind(name).value_or(OptimizerKind::SGD)};
}

ProgramSpec makeProgram(const std::vector<SlotKey> &slots,
                        const std::vector<LookupKey> &lookups) {
  ProgramSpec program;
  for (const SlotKey &key : slots) {
    SlotSpec slot;
    slot.dim = key.dim;
    slot.element = parseElementType(key.element).value_or(ElementType::F32);
    slot.optimizer = optimizerOf(key.optimizer);
    slot.weighted = key.weighted;
    slot.twoPhase = key.twoPhase;
    program.slots.push_back(slot);
  }
  for (const LookupKey &key : lookups) {
    SlotSpec readOnly;
    readOnly.dim = key.dim;
    readOnly.element = parseElementType(key.element).value_or(ElementType::F32);
    program.slots.push_back(readOnly);
    LookupSpec lookup;
    lookup.slot = static_cast<int64_t>(program.slots.size()) - 1;
    lookup.id = key.idBytes == 4 ? IdType::I32 : IdType::I64;
    lookup.pooled = key.pooled;
    lookup.weighted = key.weighted;
    program.lookups.push_back(lookup);
  }
  return program;
}

/// A name in the folder of temporary files, removed with the object.
class TemporaryFile {
public:
  TemporaryFile() {
    error = llvm::sys::fs::createTemporaryFile("neuroshard", "so", path);
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }

  std::error_code error;
  llvm::SmallString<128> path;
};

template <typename Key, typename Entry>
std::vector<Key> missing(const std::vector<Key> &keys,
                         const std::map<Key, Entry> &have) {
  std::vector<Key> result;
  for (const Key &key : keys)
    if (!have.contains(key))
      result.push_back(key);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

template <typename Key>
std::vector<Key> part(const std::vector<Key> &keys, size_t begin, size_t end) {
  begin = std::min(begin, keys.size());
  end = std::min(end, keys.size());
  return {keys.begin() + static_cast<std::ptrdiff_t>(begin),
          keys.begin() + static_cast<std::ptrdiff_t>(end)};
}

} // namespace

std::string KernelLibrary::compile(const std::vector<SlotKey> &someSlots,
                                   const std::vector<LookupKey> &someLookups,
                                   const std::string &targetCpu) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  registerNativeDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          errors += diagnostic.str() + "\n";
                                          return mlir::success();
                                        });
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  TemporaryFile file;
  if (file.error)
    return "cannot make a temporary file: " + file.error.message();
  NativeOptions options;
  options.targetCpu = targetCpu;
#if defined(__SANITIZE_ADDRESS__)
  options.addressSanitizer = true; // the kernels run in this process
#endif
  if (failed(buildProgramTable(*module, makeProgram(someSlots, someLookups))) ||
      failed(compileToSharedLibrary(*module, options, file.path)))
    return errors.empty() ? "compiling kernels failed" : errors;

  std::shared_ptr<void> handle(dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL),
                               [](void *h) {
                                 if (h)
                                   dlclose(h);
                               });
  const auto *program = handle ? static_cast<const nsrt_program *>(
                                     dlsym(handle.get(), NSRT_PROGRAM_SYMBOL))
                               : nullptr;
  if (!program)
    return std::string("cannot load compiled kernels: ") + dlerror();
  handles.push_back(handle);
  for (size_t i = 0; i < someSlots.size(); ++i)
    slots[someSlots[i]] = program->slots[i];
  for (size_t i = 0; i < someLookups.size(); ++i) {
    lookups[someLookups[i]] = program->lookups[i];
    lookups[someLookups[i]].slot = 0;
  }
  return "";
}

std::string KernelLibrary::add(
    const std::vector<SlotKey> &slotKeys,
    const std::vector<LookupKey> &lookupKeys, const std::string &targetCpu,
    const std::function<void(size_t done, size_t all)> &progress) {
  std::vector<SlotKey> newSlots = missing(slotKeys, slots);
  std::vector<LookupKey> newLookups = missing(lookupKeys, lookups);
  size_t all = newSlots.size() + newLookups.size();
  for (size_t i = 0; i < all; i += kKernelsPerLibrary) {
    progress(i, all);
    size_t end = i + kKernelsPerLibrary;
    size_t slotCount = newSlots.size();
    std::string error =
        compile(part(newSlots, i, end),
                part(newLookups, i > slotCount ? i - slotCount : 0,
                     end > slotCount ? end - slotCount : 0),
                targetCpu);
    if (!error.empty())
      return error;
  }
  progress(all, all);
  return "";
}

} // namespace neuroshard::collect
