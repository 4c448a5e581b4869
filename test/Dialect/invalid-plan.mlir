// What plans, shards and pins refuse.
// RUN: neuroshard-dialect-opt-raw %s --split-input-file --verify-diagnostics

// expected-error@below {{'cluster' is not a topology}}
neuroshard.plan @plan on @cluster semantics exact {
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-note@below {{the other shard is here}}
  neuroshard.shard "a" of @t rows [0, 100) cols [0, 10) on [0]
  // expected-error@below {{overlaps another shard of table 't'; every element has one owner}}
  neuroshard.shard "b" of @t rows [99, 100) cols [0, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-note@below {{the other shard is here}}
  neuroshard.shard "a" of @t rows [0, 50) cols [0, 10) on [0]
  // expected-error@below {{name "a" is used twice in the plan}}
  neuroshard.shard "a" of @t rows [50, 100) cols [0, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{is not allowed in a plan, which holds shards and pins only}}
  func.func private @f()
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{name must not be empty}}
  neuroshard.shard "" of @t rows [0, 100) cols [0, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{rows must be a non-empty range from 0, got: [5, 5)}}
  neuroshard.shard "s" of @t rows [5, 5) cols [0, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{rows must be a non-empty range from 0, got: [-1, 5)}}
  neuroshard.shard "s" of @t rows [-1, 5) cols [0, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{columns must be a non-empty range from 0, got: [8, 4)}}
  neuroshard.shard "s" of @t rows [0, 100) cols [8, 4) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{inner column boundary must be a multiple of 4, got: 6}}
  neuroshard.shard "s" of @t rows [0, 100) cols [6, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{inner column boundary must be a multiple of 4, got: 6}}
  neuroshard.shard "s" of @t rows [0, 100) cols [0, 6) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{must name at least one device}}
  neuroshard.shard "s" of @t rows [0, 100) cols [0, 10) on []
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{device must not be negative, got: -1}}
  neuroshard.shard "s" of @t rows [0, 100) cols [0, 10) on [-1]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{device 1 is named twice}}
  neuroshard.shard "s" of @t rows [0, 100) cols [0, 10) on [1, 1]
}

// -----

// expected-note@below {{the topology is defined here}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{device must be one of the topology's 2, numbered from 0, got: 2}}
  neuroshard.shard "s" of @t rows [0, 100) cols [0, 10) on [2]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
// expected-note@below {{the table is defined here}}
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{must lie inside its table of 100 x 10, got rows [0, 101) and columns [0, 10)}}
  neuroshard.shard "s" of @t rows [0, 101) cols [0, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{'u' is not a table}}
  neuroshard.shard "s" of @u rows [0, 100) cols [0, 10) on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{'u' is not a table}}
  neuroshard.pin @u on [0]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{must name at least one device}}
  neuroshard.pin @t on []
}

// -----

// expected-note@below {{the topology is defined here}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{device must be one of the topology's 2, numbered from 0, got: 3}}
  neuroshard.pin @t on [3]
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<4 x "H200">]
  levels [#neuroshard.level<"c", groups = [4], bandwidth = 1.0>,
          #neuroshard.level<"n", groups = [2, 2], bandwidth = 9.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-note@below {{the other shard is here}}
  neuroshard.shard "a" of @t rows [0, 50) cols [0, 10) on [0] route direct
  // expected-error@below {{must have the route of the other shards of table 't', direct, got: relay}}
  neuroshard.shard "b" of @t rows [50, 100) cols [0, 10) on [1] route relay
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{the cache of a shard of 100 rows in tier ssd must have a multiple of 32 rows from 32 to 128, found 0}}
  neuroshard.shard "a" of @t rows [0, 100) cols [0, 10) on [0] tier ssd
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{must have a multiple of 32 rows from 32 to 128, found 160}}
  neuroshard.shard "a" of @t rows [0, 100) cols [0, 10) on [0] tier ssd cache 160
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{a cache is for shards in tier dram or ssd, found one in tier hbm}}
  neuroshard.shard "a" of @t rows [0, 100) cols [0, 10) on [0] cache 32
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{a shard with a cache must be on one device, found 2}}
  neuroshard.shard "a" of @t rows [0, 100) cols [0, 10) on [0, 1] tier ssd cache 32
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
  levels [#neuroshard.level<"n", groups = [4], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{sync_every is for shards with copies, found a shard on one device; name the devices of its copies, or leave sync_every out}}
  neuroshard.shard "a" of @t rows [0, 100) cols [0, 10) on [0] sync_every 5
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
  levels [#neuroshard.level<"n", groups = [4], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-error@below {{sync_every must be from 1 to 1000000000 steps, got: -1}}
  neuroshard.shard "a" of @t rows [0, 100) cols [0, 10) on [0, 1] sync_every -1
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
  levels [#neuroshard.level<"n", groups = [4], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-note@below {{the other shard is here}}
  neuroshard.shard "a" of @t rows [0, 50) cols [0, 10) on [0, 1] sync_every 5
  // expected-error@below {{must have the sync_every of the other shards of its table, 5, got: 6}}
  neuroshard.shard "b" of @t rows [50, 100) cols [0, 10) on [2, 3] sync_every 6
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
  levels [#neuroshard.level<"n", groups = [4], bandwidth = 1.0>]
neuroshard.table @t : 100 x 10 x f32
neuroshard.plan @plan on @cluster semantics exact {
  // expected-note@below {{the other shard is here}}
  neuroshard.shard "a" of @t rows [0, 50) cols [0, 10) on [0, 1] sync_every 5
  // expected-error@below {{must have as many copies as the other shards of its table, since they drift: 2, got: 3}}
  neuroshard.shard "b" of @t rows [50, 100) cols [0, 10) on [0, 2, 3] sync_every 5
}
