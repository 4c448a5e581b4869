// The devices of a module's shard.grid are those that an artifact is compiled for.
// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-compile %s -o %t/a --device-class CPU --batch 64 --algorithm size --reference
// RUN: FileCheck %s --input-file=%t/a/plan.json
// CHECK: "device_count": 4

// A grid that ops refer to has no native code.
// RUN: sed 's/^  return %u/%n = shard.grid_shape @mesh axes = [0] : index\n  return %u/' %s > %t/used.mlir
// RUN: not neuroshard-compile %t/used.mlir -o %t/c --device-class CPU --batch 64 2>&1 | FileCheck %s --check-prefix=USED
// USED: error: 'shard.grid{{.*}}' op has no lowering to native code

// RUN: not neuroshard-compile %s -o %t/b --batch 64 2>&1 | FileCheck %s --check-prefix=CLASS
// CLASS: error: 'shard.grid' op does not say what its devices are; name their class

!ids = !neuroshard.jagged<["user"], i64>
shard.grid @mesh(shape = 2x2)
neuroshard.table private @user : 1000 x 16 x f32
func.func @forward(%ids: !ids) -> tensor<?x16xf32> {
  %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x16xf32>
  return %u : tensor<?x16xf32>
}
