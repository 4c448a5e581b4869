// The GPU kernels that check the ids of a batch and sort them by the devices that own their rows, and
// those that add values at places. Written as IdKernels.mlir is, whose functions may be declared here,
// too.

!ptr = !llvm.ptr<1>

gpu.module @pack_kernels {

func.func private @NSG_THREADS() -> index
func.func private @NSG_WARP() -> index
func.func private @NSG_ID64() -> i32
func.func private @NSG_PACKED_ID64() -> i32
func.func private @NSG_BAD_ID_POSITION_BITS() -> i64

func.func private @nsg_bucket.at(!ptr, index) -> !ptr
func.func private @nsg_bucket.ids(!ptr) -> !ptr
func.func private @nsg_bucket.offsets(!ptr) -> !ptr
func.func private @nsg_bucket.sample_weights(!ptr) -> !ptr
func.func private @nsg_bucket.num_ids(!ptr) -> index
func.func private @nsg_bucket.bags(!ptr) -> index
func.func private @nsg_bucket.row_begin(!ptr) -> i64
func.func private @nsg_bucket.rows(!ptr) -> i64
func.func private @nsg_bucket.padding(!ptr) -> i64
func.func private @nsg_bucket.checked_rows(!ptr) -> i64
func.func private @nsg_bucket.lengths(!ptr) -> !ptr
func.func private @nsg_bucket.bag_counts(!ptr) -> !ptr
func.func private @nsg_bucket.first(!ptr) -> !ptr
func.func private @nsg_bucket.packed_ids(!ptr) -> !ptr
func.func private @nsg_bucket.packed_weights(!ptr) -> !ptr
func.func private @nsg_bucket.places(!ptr) -> !ptr
func.func private @nsg_bucket.lookup(!ptr) -> i64
func.func private @nsg_bucket.flags(!ptr) -> i32
func.func private @nsg_bucket.lanes(!ptr) -> index
func.func private @nsg_bucket.first_block(!ptr) -> index

func.func private @load_i32(!ptr, index) -> i32
func.func private @load_i64(!ptr, index) -> i64
func.func private @load_f32(!ptr, index) -> f32
func.func private @store_i32(!ptr, index, i32)
func.func private @store_i64(!ptr, index, i64)
func.func private @store_f32(!ptr, index, f32)
func.func private @sum_of_lanes(i64, index) -> i64
func.func private @from_last(i64) -> i64

// The lesser of a word and `value`, which many threads may write.
func.func private @lessen(%word: !ptr, %value: i64) {
  %before = llvm.atomicrmw umin %word, %value monotonic : !ptr, i64
  return
}

// nsg_check_offsets: finds the first bag that ends before it begins or has 2^31 ids. A thread for each
// bag.

gpu.func @nsg_check_offsets(%offsets: !ptr, %bags_i64: i64, %first_bad: !ptr) kernel {
  %one = arith.constant 1 : index
  %too_many = arith.constant 2147483648 : i64
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %bags = arith.index_cast %bags_i64 : i64 to index
  %threads = func.call @NSG_THREADS() : () -> index
  %before = arith.muli %block, %threads : index
  %bag = arith.addi %before, %thread : index
  %is_there = arith.cmpi ult, %bag, %bags : index
  scf.if %is_there {
    %next = arith.addi %bag, %one : index
    %begin = func.call @load_i64(%offsets, %bag) : (!ptr, index) -> i64
    %end = func.call @load_i64(%offsets, %next) : (!ptr, index) -> i64
    %size = arith.subi %end, %begin : i64
    %is_bad = arith.cmpi uge, %size, %too_many : i64
    scf.if %is_bad {
      %number = arith.index_cast %bag : index to i64
      func.call @lessen(%first_bad, %number) : (!ptr, i64) -> ()
    }
  }
  gpu.return
}

// nsg_trust_offsets: copies offsets that are right; others as if all bags were empty. A thread for each
// offset.

gpu.func @nsg_trust_offsets(%offsets: !ptr, %bags_i64: i64, %num_ids: i64, %bad: !ptr, %trusted: !ptr,
                            %sizes: !ptr) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant 0 : i64
  %nothing_bad = arith.constant -1 : i64
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %bags = arith.index_cast %bags_i64 : i64 to index
  %threads = func.call @NSG_THREADS() : () -> index
  %before = arith.muli %block, %threads : index
  %number = arith.addi %before, %thread : index
  %is_there = arith.cmpi ule, %number, %bags : index
  scf.if %is_there {
    %first_bad = func.call @load_i64(%bad, %zero) : (!ptr, index) -> i64
    %first = func.call @load_i64(%offsets, %zero) : (!ptr, index) -> i64
    %last = func.call @load_i64(%offsets, %bags) : (!ptr, index) -> i64
    %begins = arith.cmpi eq, %first, %none : i64
    %ends = arith.cmpi eq, %last, %num_ids : i64
    %spans = arith.andi %begins, %ends : i1
    %ascends = arith.cmpi eq, %first_bad, %nothing_bad : i64
    %is_right = arith.andi %spans, %ascends : i1
    %given = func.call @load_i64(%offsets, %number) : (!ptr, index) -> i64
    %begin = arith.select %is_right, %given, %none : i64
    func.call @store_i64(%trusted, %number, %begin) : (!ptr, index, i64) -> ()
    %is_first = arith.cmpi eq, %number, %zero : index
    %true = arith.constant true
    %is_short = arith.xori %spans, %true : i1
    %tells = arith.andi %is_first, %is_short : i1
    scf.if %tells {
      func.call @store_i64(%bad, %one, %none) : (!ptr, index, i64) -> ()
    }
    %null = llvm.mlir.zero : !ptr
    %is_asked = llvm.icmp "ne" %sizes, %null : !ptr
    %is_bag = arith.cmpi ult, %number, %bags : index
    %is_sized = arith.andi %is_asked, %is_bag : i1
    scf.if %is_sized {
      %next = arith.addi %number, %one : index
      %following = func.call @load_i64(%offsets, %next) : (!ptr, index) -> i64
      %end = arith.select %is_right, %following, %none : i64
      %size = arith.subi %end, %begin : i64
      %size_f32 = arith.sitofp %size : i64 to f32
      func.call @store_f32(%sizes, %number, %size_f32) : (!ptr, index, f32) -> ()
    }
  }
  gpu.return
}

// Bags of a bucket. A bag has one lane, or all of a warp.

// The last bucket whose blocks begin at this one or before, by bisection.
func.func private @bucket_of(%buckets: !ptr, %num_buckets: index, %block: index) -> !ptr {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %number, %end = scf.while (%low = %zero, %high = %num_buckets) : (index, index) -> (index, index) {
    %length = arith.subi %high, %low : index
    %goes_on = arith.cmpi ugt, %length, %one : index
    scf.condition(%goes_on) %low, %high : index, index
  } do {
  ^bb0(%low: index, %high: index):
    %sum = arith.addi %low, %high : index
    %middle = arith.divui %sum, %two : index
    %other = func.call @nsg_bucket.at(%buckets, %middle) : (!ptr, index) -> !ptr
    %begin = func.call @nsg_bucket.first_block(%other) : (!ptr) -> index
    %is_after = arith.cmpi ugt, %begin, %block : index
    %new_low = arith.select %is_after, %low, %middle : index
    %new_high = arith.select %is_after, %middle, %high : index
    scf.yield %new_low, %new_high : index, index
  }
  %bucket = call @nsg_bucket.at(%buckets, %number) : (!ptr, index) -> !ptr
  return %bucket : !ptr
}

// The bag and the lane of a thread.
func.func private @bag_of(%bucket: !ptr, %block: index, %thread: index) -> (index, index) {
  %first_block = call @nsg_bucket.first_block(%bucket) : (!ptr) -> index
  %lanes = call @nsg_bucket.lanes(%bucket) : (!ptr) -> index
  %threads = call @NSG_THREADS() : () -> index
  %block_of_bucket = arith.subi %block, %first_block : index
  %before = arith.muli %block_of_bucket, %threads : index
  %number = arith.addi %before, %thread : index
  %bag = arith.divui %number, %lanes : index
  %lane = arith.remui %number, %lanes : index
  return %bag, %lane : index, index
}

// Where the ids of a bag begin and end. Offsets that are wrong, which nsg_check_offsets finds, lead to
// no place outside of the ids.
func.func private @ids_of(%bucket: !ptr, %bag: index) -> (index, index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %offsets = call @nsg_bucket.offsets(%bucket) : (!ptr) -> !ptr
  %num_ids = call @nsg_bucket.num_ids(%bucket) : (!ptr) -> index
  %next = arith.addi %bag, %one : index
  %begin_i64 = call @load_i64(%offsets, %bag) : (!ptr, index) -> i64
  %end_i64 = call @load_i64(%offsets, %next) : (!ptr, index) -> i64
  %begin_index = arith.index_cast %begin_i64 : i64 to index
  %end_index = arith.index_cast %end_i64 : i64 to index
  %begin_there = arith.maxsi %begin_index, %zero : index
  %begin = arith.minsi %begin_there, %num_ids : index
  %end_there = arith.maxsi %end_index, %begin : index
  %end = arith.minsi %end_there, %num_ids : index
  return %begin, %end : index, index
}

func.func private @id_at(%bucket: !ptr, %position: index) -> i64 {
  %ids = call @nsg_bucket.ids(%bucket) : (!ptr) -> !ptr
  %flags = call @nsg_bucket.flags(%bucket) : (!ptr) -> i32
  %id64 = call @NSG_ID64() : () -> i32
  %bit = arith.andi %flags, %id64 : i32
  %is_long = arith.cmpi eq, %bit, %id64 : i32
  %id = scf.if %is_long -> (i64) {
    %long = func.call @load_i64(%ids, %position) : (!ptr, index) -> i64
    scf.yield %long : i64
  } else {
    %short = func.call @load_i32(%ids, %position) : (!ptr, index) -> i32
    %long = arith.extsi %short : i32 to i64
    scf.yield %long : i64
  }
  return %id : i64
}

func.func private @is_member(%bucket: !ptr, %id: i64) -> i1 {
  %row_begin = call @nsg_bucket.row_begin(%bucket) : (!ptr) -> i64
  %rows = call @nsg_bucket.rows(%bucket) : (!ptr) -> i64
  %padding = call @nsg_bucket.padding(%bucket) : (!ptr) -> i64
  %row = arith.subi %id, %row_begin : i64
  %is_in = arith.cmpi ult, %row, %rows : i64
  %is_row = arith.cmpi ne, %id, %padding : i64
  %both = arith.andi %is_in, %is_row : i1
  return %both : i1
}

// Reports an id that is out of range, if this bucket's ids are checked.
func.func private @check_id(%bucket: !ptr, %id: i64, %position: index, %bad_id: !ptr) {
  %zero = arith.constant 0 : i64
  %rows = call @nsg_bucket.checked_rows(%bucket) : (!ptr) -> i64
  %is_checked = arith.cmpi ne, %rows, %zero : i64
  %is_out = arith.cmpi uge, %id, %rows : i64
  %is_bad = arith.andi %is_checked, %is_out : i1
  scf.if %is_bad {
    %lookup = func.call @nsg_bucket.lookup(%bucket) : (!ptr) -> i64
    %bits = func.call @NSG_BAD_ID_POSITION_BITS() : () -> i64
    %high = arith.shli %lookup, %bits : i64
    %low = arith.index_cast %position : index to i64
    %word = arith.ori %high, %low : i64
    func.call @lessen(%bad_id, %word) : (!ptr, i64) -> ()
  }
  return
}

// The sum over the lanes of a bag, in all of them.
func.func private @sum_of_bag(%own: i64, %lane: index, %lanes: index) -> i64 {
  %one = arith.constant 1 : index
  %is_alone = arith.cmpi eq, %lanes, %one : index
  %sum = scf.if %is_alone -> (i64) {
    scf.yield %own : i64
  } else {
    %before = func.call @sum_of_lanes(%own, %lane) : (i64, index) -> i64
    %all = func.call @from_last(%before) : (i64) -> i64
    scf.yield %all : i64
  }
  return %sum : i64
}

// nsg_count_bags: the ids of each bag that a bucket has, and whether they are in range.

func.func private @count_bag(%bucket: !ptr, %bag: index, %lane: index, %bad_id: !ptr) {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0 : i64
  %lanes = call @nsg_bucket.lanes(%bucket) : (!ptr) -> index
  %begin, %end = call @ids_of(%bucket, %bag) : (!ptr, index) -> (index, index)
  %own_begin = arith.addi %begin, %lane : index
  %members = scf.for %position = %own_begin to %end step %lanes
      iter_args(%found = %nothing) -> (i64) {
    %id = func.call @id_at(%bucket, %position) : (!ptr, index) -> i64
    func.call @check_id(%bucket, %id, %position, %bad_id) : (!ptr, i64, index, !ptr) -> ()
    %is_member = func.call @is_member(%bucket, %id) : (!ptr, i64) -> i1
    %member = arith.extui %is_member : i1 to i64
    %next = arith.addi %found, %member : i64
    scf.yield %next : i64
  }
  %length = call @sum_of_bag(%members, %lane, %lanes) : (i64, index, index) -> i64
  %is_first = arith.cmpi eq, %lane, %zero : index
  scf.if %is_first {
    %lengths = func.call @nsg_bucket.lengths(%bucket) : (!ptr) -> !ptr
    %length_i32 = arith.trunci %length : i64 to i32
    func.call @store_i32(%lengths, %bag, %length_i32) : (!ptr, index, i32) -> ()
  }
  return
}

gpu.func @nsg_count_bags(%buckets: !ptr, %num_buckets_i32: i32, %bad_id: !ptr) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %num_buckets = arith.index_cast %num_buckets_i32 : i32 to index
  %bucket = func.call @bucket_of(%buckets, %num_buckets, %block) : (!ptr, index, index) -> !ptr
  %bag, %lane = func.call @bag_of(%bucket, %block, %thread) : (!ptr, index, index) -> (index, index)
  %bags = func.call @nsg_bucket.bags(%bucket) : (!ptr) -> index
  %is_there = arith.cmpi ult, %bag, %bags : index
  scf.if %is_there {
    func.call @count_bag(%bucket, %bag, %lane, %bad_id) : (!ptr, index, index, !ptr) -> ()
  }
  gpu.return
}

// nsg_pack_ids: writes the ids of a bucket, bag after bag, in the order of the input.

// A mean divides by the ids of the whole bag, wherever their rows live.
func.func private @store_count(%bucket: !ptr, %bag: index, %lane: index, %ids: index, %padded: i64) {
  %zero = arith.constant 0 : index
  %lanes = call @nsg_bucket.lanes(%bucket) : (!ptr) -> index
  %all_padded = call @sum_of_bag(%padded, %lane, %lanes) : (i64, index, index) -> i64
  %counts = call @nsg_bucket.bag_counts(%bucket) : (!ptr) -> !ptr
  %null = llvm.mlir.zero : !ptr
  %is_mean = llvm.icmp "ne" %counts, %null : !ptr
  %is_first = arith.cmpi eq, %lane, %zero : index
  %is_written = arith.andi %is_mean, %is_first : i1
  scf.if %is_written {
    %ids_i64 = arith.index_cast %ids : index to i64
    %count = arith.subi %ids_i64, %all_padded : i64
    %count_f32 = arith.sitofp %count : i64 to f32
    func.call @store_f32(%counts, %bag, %count_f32) : (!ptr, index, f32) -> ()
  }
  return
}

func.func private @pack_id(%bucket: !ptr, %position: index, %id: i64, %place: index) {
  %row_begin = call @nsg_bucket.row_begin(%bucket) : (!ptr) -> i64
  %row = arith.subi %id, %row_begin : i64
  %packed = call @nsg_bucket.packed_ids(%bucket) : (!ptr) -> !ptr
  %flags = call @nsg_bucket.flags(%bucket) : (!ptr) -> i32
  %id64 = call @NSG_PACKED_ID64() : () -> i32
  %bit = arith.andi %flags, %id64 : i32
  %is_long = arith.cmpi eq, %bit, %id64 : i32
  scf.if %is_long {
    func.call @store_i64(%packed, %place, %row) : (!ptr, index, i64) -> ()
  } else {
    %short = arith.trunci %row : i64 to i32
    func.call @store_i32(%packed, %place, %short) : (!ptr, index, i32) -> ()
  }
  %null = llvm.mlir.zero : !ptr
  %weights = call @nsg_bucket.packed_weights(%bucket) : (!ptr) -> !ptr
  %is_weighted = llvm.icmp "ne" %weights, %null : !ptr
  scf.if %is_weighted {
    %from = func.call @nsg_bucket.sample_weights(%bucket) : (!ptr) -> !ptr
    %weight = func.call @load_f32(%from, %position) : (!ptr, index) -> f32
    func.call @store_f32(%weights, %place, %weight) : (!ptr, index, f32) -> ()
  }
  %places = call @nsg_bucket.places(%bucket) : (!ptr) -> !ptr
  %is_listed = llvm.icmp "ne" %places, %null : !ptr
  scf.if %is_listed {
    %position_i64 = arith.index_cast %position : index to i64
    func.call @store_i64(%places, %place, %position_i64) : (!ptr, index, i64) -> ()
  }
  return
}

// All lanes of a warp go through a bag together: each has to know how many ids those before it have.
func.func private @pack_bag(%bucket: !ptr, %bag: index, %lane: index) {
  %zero = arith.constant 0 : i64
  %lanes = call @nsg_bucket.lanes(%bucket) : (!ptr) -> index
  %begin, %end = call @ids_of(%bucket, %bag) : (!ptr, index) -> (index, index)
  %first = call @nsg_bucket.first(%bucket) : (!ptr) -> !ptr
  %place_begin = call @load_i64(%first, %bag) : (!ptr, index) -> i64
  %padding = call @nsg_bucket.padding(%bucket) : (!ptr) -> i64
  %last, %all_padded = scf.for %from = %begin to %end step %lanes
      iter_args(%next = %place_begin, %padded = %zero) -> (i64, i64) {
    %position = arith.addi %from, %lane : index
    %is_there = arith.cmpi ult, %position, %end : index
    %id, %is_member = scf.if %is_there -> (i64, i1) {
      %own = func.call @id_at(%bucket, %position) : (!ptr, index) -> i64
      %is_own = func.call @is_member(%bucket, %own) : (!ptr, i64) -> i1
      scf.yield %own, %is_own : i64, i1
    } else {
      %false = arith.constant false
      scf.yield %zero, %false : i64, i1
    }
    %member = arith.extui %is_member : i1 to i64
    %is_alone = func.call @is_one(%lanes) : (index) -> i1
    %before, %all = scf.if %is_alone -> (i64, i64) {
      scf.yield %zero, %member : i64, i64
    } else {
      %sum = func.call @sum_of_lanes(%member, %lane) : (i64, index) -> i64
      %total = func.call @from_last(%sum) : (i64) -> i64
      %others = arith.subi %sum, %member : i64
      scf.yield %others, %total : i64, i64
    }
    scf.if %is_member {
      %place_i64 = arith.addi %next, %before : i64
      %place = arith.index_cast %place_i64 : i64 to index
      func.call @pack_id(%bucket, %position, %id, %place) : (!ptr, index, i64, index) -> ()
    }
    %following = arith.addi %next, %all : i64
    %is_equal = arith.cmpi eq, %id, %padding : i64
    %is_padding = arith.andi %is_equal, %is_there : i1
    %pad = arith.extui %is_padding : i1 to i64
    %next_padded = arith.addi %padded, %pad : i64
    scf.yield %following, %next_padded : i64, i64
  }
  %ids = arith.subi %end, %begin : index
  call @store_count(%bucket, %bag, %lane, %ids, %all_padded)
    : (!ptr, index, index, index, i64) -> ()
  return
}

func.func private @is_one(%number: index) -> i1 {
  %one = arith.constant 1 : index
  %is_one = arith.cmpi eq, %number, %one : index
  return %is_one : i1
}

gpu.func @nsg_pack_ids(%buckets: !ptr, %num_buckets_i32: i32) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %num_buckets = arith.index_cast %num_buckets_i32 : i32 to index
  %bucket = func.call @bucket_of(%buckets, %num_buckets, %block) : (!ptr, index, index) -> !ptr
  %bag, %lane = func.call @bag_of(%bucket, %block, %thread) : (!ptr, index, index) -> (index, index)
  %bags = func.call @nsg_bucket.bags(%bucket) : (!ptr) -> index
  %is_there = arith.cmpi ult, %bag, %bags : index
  scf.if %is_there {
    func.call @pack_bag(%bucket, %bag, %lane) : (!ptr, index, index) -> ()
  }
  gpu.return
}

// nsg_add_values: adds values to those at their places. A thread for each.

gpu.func @nsg_add_values(%out: !ptr, %values: !ptr, %places: !ptr, %first: i64, %count_i64: i64) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %count = arith.index_cast %count_i64 : i64 to index
  %threads = func.call @NSG_THREADS() : () -> index
  %before = arith.muli %block, %threads : index
  %number = arith.addi %before, %thread : index
  %is_there = arith.cmpi ult, %number, %count : index
  scf.if %is_there {
    %null = llvm.mlir.zero : !ptr
    %is_listed = llvm.icmp "ne" %places, %null : !ptr
    %place = scf.if %is_listed -> (i64) {
      %listed = func.call @load_i64(%places, %number) : (!ptr, index) -> i64
      scf.yield %listed : i64
    } else {
      %own = arith.index_cast %number : index to i64
      %following = arith.addi %first, %own : i64
      scf.yield %following : i64
    }
    %at = llvm.getelementptr %out[%place] : (!ptr, i64) -> !ptr, f32
    %old = llvm.load %at {alignment = 4 : i64} : !ptr -> f32
    %value = func.call @load_f32(%values, %number) : (!ptr, index) -> f32
    %sum = arith.addf %old, %value : f32
    llvm.store %sum, %at {alignment = 4 : i64} : f32, !ptr
  }
  gpu.return
}

// nsg_divide_values: divides all values. A thread for each.

gpu.func @nsg_divide_values(%values: !ptr, %count_i64: i64, %divisor: f32) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %count = arith.index_cast %count_i64 : i64 to index
  %threads = func.call @NSG_THREADS() : () -> index
  %before = arith.muli %block, %threads : index
  %number = arith.addi %before, %thread : index
  %is_there = arith.cmpi ult, %number, %count : index
  scf.if %is_there {
    %number_i64 = arith.index_cast %number : index to i64
    %at = llvm.getelementptr %values[%number_i64] : (!ptr, i64) -> !ptr, f32
    %value = llvm.load %at {alignment = 4 : i64} : !ptr -> f32
    %quotient = arith.divf %value, %divisor : f32
    llvm.store %quotient, %at {alignment = 4 : i64} : f32, !ptr
  }
  gpu.return
}

}
