// Each handle is used with its own exchange and before its release, and is released once.
// RUN: neuroshard-opt %s --neuroshard-verify-partitioned -o /dev/null
// RUN: sed 's/@e0(%device, %r0)/@e1(%device, %r0)/' %s > %t.other
// RUN: not neuroshard-opt %t.other --neuroshard-verify-partitioned 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/\(.*\/\/ free r0\)/\1 \n neuroshard.release %device, %r0 : !neuroshard.routed/' %s > %t.twice
// RUN: not neuroshard-opt %t.twice --neuroshard-verify-partitioned 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed '/free l1/d' %s > %t.never
// RUN: not neuroshard-opt %t.never --neuroshard-verify-partitioned 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: sed 's/\(.*\/\/ begin\)/\1 \n neuroshard.release %device, %l0 : !neuroshard.partials/; /free l0/d' %s > %t.early
// RUN: not neuroshard-opt %t.early --neuroshard-verify-partitioned 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed '/free c0/d' %s > %t.context
// RUN: not neuroshard-opt %t.context --neuroshard-verify-partitioned 2>&1 | FileCheck %s --check-prefix=CONTEXT

// OTHER: error: 'neuroshard.run_lookup' op of exchange '@e1' takes a handle of '@e0'
// OTHER: note: the handle is made here
// TWICE: error: 'neuroshard.release' op releases a handle a second time
// TWICE: note: the first is here
// NEVER: error: 'neuroshard.run_lookup' op makes a handle that is never released
// NEVER: note: '@embeddings_wait' ends here
// EARLY: error: 'neuroshard.exchange_results' op uses a handle that is released already
// EARLY: note: it is released here
// CONTEXT: error: 'neuroshard.route' op makes a handle that is never released
// CONTEXT: note: '@forward' ends here

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!neuroshard.routed, !neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.routed, !neuroshard.partials, !neuroshard.partials>
!context = !neuroshard.context<!neuroshard.routed>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
}
neuroshard.exchange @e0 of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x8xf32>]
neuroshard.exchange @e1 of !ids on @plan lookups [#neuroshard.lookup<mean @t["a"]>] results [tensor<?x8xf32>]
neuroshard.device_program @program0 for [0] {
  neuroshard.local_table 0 : 8 x f32 of 8 shards ["t"]
  neuroshard.local_lookup pooled of 0 in @e0 binds [0]
  neuroshard.local_lookup pooled of 0 in @e1 binds [0]
}
func.func @embeddings_start(%device: !neuroshard.device, %a: !ids, %b: !ids) -> !pending {
  %r0 = neuroshard.route @e0(%device, %a) : !ids
  %r1 = neuroshard.route @e1(%device, %b) : !ids
  %p = neuroshard.suspend %r0, %r1 : !neuroshard.routed, !neuroshard.routed -> !pending
  return %p : !pending
}
func.func @embeddings_lookup(%device: !neuroshard.device, %p: !pending) -> !looked_up {
  %r0, %r1 = neuroshard.resume %p : !pending -> !neuroshard.routed, !neuroshard.routed
  %l0 = neuroshard.run_lookup @e0(%device, %r0)
  %l1 = neuroshard.run_lookup @e1(%device, %r1)
  %q = neuroshard.suspend %r0, %r1, %l0, %l1
    : !neuroshard.routed, !neuroshard.routed, !neuroshard.partials, !neuroshard.partials -> !looked_up
  return %q : !looked_up
}
func.func @embeddings_wait(%device: !neuroshard.device, %p: !looked_up) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %r0, %r1, %l0, %l1 = neuroshard.resume %p
    : !looked_up -> !neuroshard.routed, !neuroshard.routed, !neuroshard.partials, !neuroshard.partials // begin
  %0 = neuroshard.exchange_results @e0(%device, %r0, %l0) -> tensor<?x8xf32>
  %1 = neuroshard.exchange_results @e1(%device, %r1, %l1) -> tensor<?x8xf32>
  neuroshard.release %device, %r0 : !neuroshard.routed // free r0
  neuroshard.release %device, %l0 : !neuroshard.partials // free l0
  neuroshard.release %device, %l1 : !neuroshard.partials // free l1
  %c = neuroshard.save %r1 : !neuroshard.routed -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @forward(%device: !neuroshard.device, %a: !ids, %b: !ids) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = call @embeddings_start(%device, %a, %b) : (!neuroshard.device, !ids, !ids) -> !pending
  %1 = call @embeddings_lookup(%device, %0) : (!neuroshard.device, !pending) -> !looked_up
  %2:3 = call @embeddings_wait(%device, %1) : (!neuroshard.device, !looked_up) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context)
  %3 = neuroshard.restore %2#2 : !context -> !neuroshard.routed
  neuroshard.release %device, %3 : !neuroshard.routed // free c0
  return %2#0, %2#1 : tensor<?x8xf32>, tensor<?x8xf32>
}
