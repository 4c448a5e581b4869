// An artifact is replaced, anything else is not, and a failed compilation changes nothing.

// RUN: rm -rf %t && mkdir -p %t/other
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/a
// RUN: cp %t/a/manifest.json %t/manifest.json
// RUN: not neuroshard-compile %s -o %t/a
// RUN: cmp %t/a/manifest.json %t/manifest.json
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/a/ --reference
// RUN: ls %t/a | FileCheck %s --check-prefix=REPLACED
// RUN: ls %t | FileCheck %s --check-prefix=BESIDE
// REPLACED: reference.so
// BESIDE: a
// BESIDE-NEXT: manifest.json
// BESIDE-NEXT: other
// BESIDE-NOT: {{.}}

// RUN: echo mine > %t/other/file
// RUN: not neuroshard-compile %S/Inputs/planned.mlir -o %t/other 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: FileCheck %s --check-prefix=MINE --input-file=%t/other/file
// OTHER: error: output '{{.*}}other' is a directory that is not an artifact; choose another, or remove it first
// MINE: mine
// RUN: not neuroshard-compile %S/Inputs/planned.mlir -o %t/other/file 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: output '{{.*}}file' is not a directory

// A % in the path is one.
// RUN: mkdir -p "%t/100%%s%%x"
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o "%t/100%%s%%x/a" --reference
// RUN: neuroshard-run "%t/100%%s%%x/a" --batch 4
// RUN: rm -r "%t/100%%s%%x"

// Files that are not of the artifact stay.
// RUN: echo mine > %t/a/notes.txt
// RUN: not neuroshard-compile %S/Inputs/planned.mlir -o %t/a 2>&1 | FileCheck %s --check-prefix=NOTES
// RUN: FileCheck %s --check-prefix=MINE --input-file=%t/a/notes.txt
// NOTES: error: output '{{.*}}a' is an artifact with 'notes.txt', which its manifest does not list and the compiler would remove; move it away, or choose another directory
// RUN: mv %t/a/notes.txt %t/other/notes.txt
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/a --emit-ir
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/a

neuroshard.table @t : 10 x 3 x f32
