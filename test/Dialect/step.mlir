// Packing, sizes, bundles and updates of the logical level print as they parse.
// RUN: neuroshard-dialect-opt %s | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>
!weighted = !neuroshard.jagged<["q"], i32, weighted>

neuroshard.table @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}

// CHECK-LABEL: func.func @pack
func.func @pack(%a: tensor<?xi64>, %oa: tensor<?xi64>, %q: tensor<?xi32>, %oq: tensor<?xi32>, %w: tensor<?xf32>) {
  // CHECK: neuroshard.pack ids(%{{.*}}, %{{.*}} : tensor<?xi64>, tensor<?xi64>) offsets(%{{.*}}, %{{.*}} : tensor<?xi64>, tensor<?xi64>) : !ids
  %ab = neuroshard.pack ids(%a, %a : tensor<?xi64>, tensor<?xi64>) offsets(%oa, %oa : tensor<?xi64>, tensor<?xi64>) : !ids
  // CHECK: neuroshard.pack ids(%{{.*}} : tensor<?xi32>) offsets(%{{.*}} : tensor<?xi32>) weights(%{{.*}} : tensor<?xf32>) : !ids1
  %p = neuroshard.pack ids(%q : tensor<?xi32>) offsets(%oq : tensor<?xi32>) weights(%w : tensor<?xf32>) : !weighted
  // CHECK: neuroshard.from_keyed %{{.*}}, %{{.*}} : tensor<?xi64>, tensor<?xi64> -> !ids
  %k = neuroshard.from_keyed %a, %oa : tensor<?xi64>, tensor<?xi64> -> !ids
  // CHECK: neuroshard.from_keyed %{{.*}}, %{{.*}} weights %{{.*}} : tensor<?xi32>, tensor<?xi32>, tensor<?xf32> -> !ids1
  %kq = neuroshard.from_keyed %q, %oq weights %w : tensor<?xi32>, tensor<?xi32>, tensor<?xf32> -> !weighted
  // CHECK: neuroshard.unpack %{{.*}}["a"] : !ids -> tensor<?xi64>, tensor<?xi64>
  %u:2 = neuroshard.unpack %k["a"] : !ids -> tensor<?xi64>, tensor<?xi64>
  // CHECK: neuroshard.unpack %{{.*}}["q"] : !ids1 -> tensor<?xi32>, tensor<?xi64>, tensor<?xf32>
  %v:3 = neuroshard.unpack %kq["q"] : !weighted -> tensor<?xi32>, tensor<?xi64>, tensor<?xf32>
  // CHECK: neuroshard.batch_size %{{.*}} : !ids
  %n = neuroshard.batch_size %k : !ids
  // CHECK: neuroshard.num_ids %{{.*}} : !ids
  %m = neuroshard.num_ids %k : !ids
  // CHECK: neuroshard.num_ids %{{.*}}["b"] : !ids
  %mb = neuroshard.num_ids %k["b"] : !ids
  return
}

// CHECK-LABEL: func.func @bundles
func.func @bundles(%a: !ids, %q: !weighted) -> !ids {
  // CHECK: %[[P:.*]] = neuroshard.suspend %{{.*}}, %{{.*}} : !ids, !ids1 -> !pending
  %p = neuroshard.suspend %a, %q : !ids, !weighted -> !neuroshard.pending<!ids, !weighted>
  // CHECK: neuroshard.resume %[[P]] : !pending -> !ids, !ids1
  %r:2 = neuroshard.resume %p : !neuroshard.pending<!ids, !weighted> -> !ids, !weighted
  // CHECK: %[[C:.*]] = neuroshard.save %{{.*}} : !ids -> !context
  %c = neuroshard.save %r#0 : !ids -> !neuroshard.context<!ids>
  // CHECK: neuroshard.restore %[[C]] : !context -> !ids
  %s = neuroshard.restore %c : !neuroshard.context<!ids> -> !ids
  // CHECK: neuroshard.discard %[[C]] : !context
  neuroshard.discard %c : !neuroshard.context<!ids>
  // CHECK: %[[E:.*]] = neuroshard.suspend !neuroshard.pending
  %e = neuroshard.suspend !neuroshard.pending
  // CHECK: neuroshard.resume %[[E]] : !neuroshard.pending{{$}}
  neuroshard.resume %e : !neuroshard.pending
  return %s : !ids
}

// CHECK-LABEL: func.func @update
func.func @update(%a: !ids, %q: !weighted, %g: tensor<?x8xf32>, %h: tensor<?x8xbf16>, %lr: f32, %step: i64) -> tensor<?xf32> {
  // CHECK: neuroshard.weights_gradient %{{.*}} [#neuroshard.lookup<sum @t["q"] weighted>] gradients(%{{.*}}) : !ids1, tensor<?x8xbf16> -> tensor<?xf32>
  %w = neuroshard.weights_gradient %q [#neuroshard.lookup<sum @t["q"] weighted>] gradients(%h) : !weighted, tensor<?x8xbf16> -> tensor<?xf32>
  // CHECK: neuroshard.update @t [#neuroshard.lookup<mean @t["b"] padding_idx = 3>, #neuroshard.lookup<unpooled @t["q"]>] ids(%{{.*}}, %{{.*}} : !ids, !ids1) gradients(%{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<?x8xbf16>) learning_rate %{{.*}} step %{{.*}}
  neuroshard.update @t [#neuroshard.lookup<mean @t["b"] padding_idx = 3>, #neuroshard.lookup<unpooled @t["q"]>]
    ids(%a, %q : !ids, !weighted) gradients(%g, %h : tensor<?x8xf32>, tensor<?x8xbf16>) learning_rate %lr step %step
  return %w : tensor<?xf32>
}
