//===- ProgramLibrary.cpp - A compiled device program ---------------------===//
//
// Program libraries call the nsrt_* functions but do not name the library that
// has them. So this library must be globally visible, also if it was loaded
// privately, as Python's ctypes does.
//
//===----------------------------------------------------------------------===//

#include "ProgramLibrary.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <dlfcn.h>

namespace neuroshard::runtime {

namespace {

std::string lastLoadError() {
  const char *text = dlerror();
  return text ? text : "unknown error";
}

/// Makes the symbols of this library globally visible. Does nothing if this
/// code is linked into the executable: if the executable does not export the
/// symbols, loading a program library fails and names the missing one.
void makeRuntimeVisible() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&nsrt_route), &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  dlerror();
}

} // namespace

ProgramLibrary::ProgramLibrary(const std::string &path) : label(path) {
  makeRuntimeVisible();
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    fail("cannot load program library: ", lastLoadError());
  table = static_cast<const nsrt_program *>(dlsym(handle, NSRT_PROGRAM_SYMBOL));
  if (table)
    return;
  dlclose(handle);
  fail("program library ", path, " does not export neuroshard_program");
}

ProgramLibrary::ProgramLibrary(const nsrt_program &program)
    : table(&program), label("in-process program") {}

ProgramLibrary::~ProgramLibrary() {
  if (handle)
    dlclose(handle);
}

nsrt_host_function ProgramLibrary::find(const std::string &name) const {
  if (auto it = added.find(name); it != added.end())
    return it->second;
  void *symbol =
      handle ? dlsym(handle, (NSRT_INVOKE_PREFIX + name).c_str()) : nullptr;
  if (!symbol)
    fail(label, " has no function \"", name, "\"");
  return reinterpret_cast<nsrt_host_function>(symbol);
}

} // namespace neuroshard::runtime
