//===- ProgramLibrary.h - A compiled device program ------------*- C++ -*-===//
//
// The kernels and host functions of one program, from a shared library of an
// artifact or from this process.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_DEVICE_PROGRAMLIBRARY_H
#define NEUROSHARD_LIB_RUNTIME_DEVICE_PROGRAMLIBRARY_H

#include "neuroshard/Runtime/DriverABI.h"

#include <map>
#include <memory>
#include <string>

namespace neuroshard::runtime {

class ProgramLibrary {
public:
  /// Loads a library; throws a RuntimeError if that fails or it exports no
  /// `neuroshard_program`.
  explicit ProgramLibrary(const std::string &path);
  /// Takes a program of this process, which must outlive the object.
  explicit ProgramLibrary(const nsrt_program &program);
  ~ProgramLibrary();
  ProgramLibrary(const ProgramLibrary &) = delete;
  ProgramLibrary &operator=(const ProgramLibrary &) = delete;

  const nsrt_program &program() const { return *table; }

  void add(const std::string &name, nsrt_host_function function) {
    added[name] = function;
  }
  /// The function `nsrt_invoke_<name>`; throws a RuntimeError if there is
  /// none.
  nsrt_host_function find(const std::string &name) const;

private:
  void *handle = nullptr;
  const nsrt_program *table = nullptr;
  std::string label;
  std::map<std::string, nsrt_host_function> added;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_DEVICE_PROGRAMLIBRARY_H
