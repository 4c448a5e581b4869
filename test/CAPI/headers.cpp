//===- headers.cpp - The C headers in C++, and both libraries at once -----===//

// RUN: %c_programs/neuroshard-c-headers | FileCheck %s

#include "neuroshard-c/Dialect.h"
#include "neuroshard-c/Planner.h"

#include <cstdio>

int main() {
  // CHECK: 0.1.0 neuroshard
  MlirStringRef name =
      mlirDialectHandleGetNamespace(mlirGetDialectHandle__neuroshard__());
  std::printf("%s %.*s\n", neuroshardVersion(), static_cast<int>(name.length),
              name.data);
  return 0;
}
