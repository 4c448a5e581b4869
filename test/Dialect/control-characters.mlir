// Messages show control characters of names as escapes, since a terminal obeys them.
// RUN: neuroshard-opt-raw %s --split-input-file --verify-diagnostics
// RUN: not neuroshard-opt-raw %s --split-input-file 2>&1 | FileCheck %s
// CHECK-NOT: {{[^[:print:][:space:]]}}

!ids = !neuroshard.jagged<["f"], i64>
func.func @no_table(%ids: !ids) -> tensor<?x4xf32> {
  // expected-error@below {{'a\x1b[31m\x0a\x7f' is not a table}}
  %0 = neuroshard.lookup sum @"a\1B[31m\0A\7F"[%ids, "f"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// expected-error@below {{unknown attribute 'neuroshard.\x1b'}}
module attributes {"neuroshard.\1B" = 1 : i64} {
}
