// The GPU kernels on ids, which are the same for all tables, dims and types.
//
// Functions without a body stand for include/neuroshard/RuntimeCuda/GpuKernelABI.h: @NSG_MEAN is a
// constant, @nsg_slot.key_end reads a field of a struct, @nsg_slot.at is the address of an element of
// an array of structs. IdKernels.cpp replaces their calls. Other
// functions are inlined, which MLIR does inside the regions of a gpu.func but not at its top level.

!ptr = !llvm.ptr<1>

gpu.module @id_kernels {

func.func private @NSG_THREADS() -> index
func.func private @NSG_EXPAND_ITEMS() -> index
func.func private @NSG_POOLED() -> i32
func.func private @NSG_MEAN() -> i32
func.func private @NSG_WEIGHTED() -> i32
func.func private @NSG_FIXED() -> i32
func.func private @NSG_ID64() -> i32

func.func private @nsg_lookup_task.at(!ptr, index) -> !ptr
func.func private @nsg_lookup_task.ids(!ptr) -> !ptr
func.func private @nsg_lookup_task.offsets(!ptr) -> !ptr
func.func private @nsg_lookup_task.sample_weights(!ptr) -> !ptr
func.func private @nsg_lookup_task.items(!ptr) -> index
func.func private @nsg_lookup_task.rows(!ptr) -> i64
func.func private @nsg_lookup_task.row_begin(!ptr) -> i64
func.func private @nsg_lookup_task.pooling(!ptr) -> index
func.func private @nsg_lookup_task.position_begin(!ptr) -> index
func.func private @nsg_lookup_task.key_begin(!ptr) -> i64
func.func private @nsg_lookup_task.gradient_begin(!ptr) -> index
func.func private @nsg_lookup_task.gradient_stride(!ptr) -> index
func.func private @nsg_lookup_task.flags(!ptr) -> i32
func.func private @nsg_lookup_task.first_expand_block(!ptr) -> index
func.func private @nsg_lookup_task.first_id(!ptr) -> index
func.func private @nsg_lookup_task.padding(!ptr) -> i64

func.func private @nsg_positions.keys(!ptr) -> !ptr
func.func private @nsg_positions.gradient_offsets(!ptr) -> !ptr
func.func private @nsg_positions.factors(!ptr) -> !ptr
func.func private @nsg_positions.key_bytes(!ptr) -> i32

func.func private @nsg_sorted.keys(!ptr) -> !ptr
func.func private @nsg_sorted.starts(!ptr) -> !ptr
func.func private @nsg_sorted.order(!ptr) -> !ptr
func.func private @nsg_sorted.num_runs(!ptr) -> !ptr
func.func private @nsg_sorted.num_positions(!ptr) -> i64
func.func private @nsg_sorted.run_begin(!ptr) -> !ptr
func.func private @nsg_sorted.key_bytes(!ptr) -> i32

func.func private @nsg_cached_part.at(!ptr, index) -> !ptr
func.func private @nsg_cached_part.places(!ptr) -> !ptr
func.func private @nsg_cached_part.position_begin(!ptr) -> index
func.func private @nsg_cached_part.position_end(!ptr) -> index
func.func private @nsg_cached_part.key_begin(!ptr) -> i64
func.func private @nsg_cached_part.id_bytes(!ptr) -> i32

func.func private @nsg_slot.at(!ptr, index) -> !ptr
func.func private @nsg_slot.key_begin(!ptr) -> i64
func.func private @nsg_slot.key_end(!ptr) -> i64

// Elements of arrays. No kernel writes an array that it loads from. Loads take offsets in bytes:
// with those nsg_expand needs two registers fewer than with offsets in elements.

func.func private @load_i32(%array: !ptr, %number: index) -> i32 {
  %size = arith.constant 4 : index
  %offset = arith.muli %number, %size : index
  %i = arith.index_cast %offset : index to i64
  %address = llvm.getelementptr %array[%i] : (!ptr, i64) -> !ptr, i8
  %value = llvm.load %address invariant {alignment = 4 : i64} : !ptr -> i32
  return %value : i32
}

func.func private @load_i64(%array: !ptr, %number: index) -> i64 {
  %size = arith.constant 8 : index
  %offset = arith.muli %number, %size : index
  %i = arith.index_cast %offset : index to i64
  %address = llvm.getelementptr %array[%i] : (!ptr, i64) -> !ptr, i8
  %value = llvm.load %address invariant {alignment = 8 : i64} : !ptr -> i64
  return %value : i64
}

func.func private @load_f32(%array: !ptr, %number: index) -> f32 {
  %size = arith.constant 4 : index
  %offset = arith.muli %number, %size : index
  %i = arith.index_cast %offset : index to i64
  %address = llvm.getelementptr %array[%i] : (!ptr, i64) -> !ptr, i8
  %value = llvm.load %address invariant {alignment = 4 : i64} : !ptr -> f32
  return %value : f32
}

func.func private @store_i32(%array: !ptr, %number: index, %value: i32) {
  %i = arith.index_cast %number : index to i64
  %address = llvm.getelementptr %array[%i] : (!ptr, i64) -> !ptr, i32
  llvm.store %value, %address {alignment = 4 : i64} : i32, !ptr
  return
}

func.func private @store_i64(%array: !ptr, %number: index, %value: i64) {
  %i = arith.index_cast %number : index to i64
  %address = llvm.getelementptr %array[%i] : (!ptr, i64) -> !ptr, i64
  llvm.store %value, %address {alignment = 8 : i64} : i64, !ptr
  return
}

func.func private @store_f32(%array: !ptr, %number: index, %value: f32) {
  %i = arith.index_cast %number : index to i64
  %address = llvm.getelementptr %array[%i] : (!ptr, i64) -> !ptr, f32
  llvm.store %value, %address {alignment = 4 : i64} : f32, !ptr
  return
}

// Tasks

func.func private @has_flag(%task: !ptr, %flag: i32) -> i1 {
  %flags = call @nsg_lookup_task.flags(%task) : (!ptr) -> i32
  %bit = arith.andi %flags, %flag : i32
  %is_set = arith.cmpi eq, %bit, %flag : i32
  return %is_set : i1
}

// The position in a task's ids where those of an item begin; for the number of items, where the
// last ones end. Item i of an unpooled task is its i-th id.
func.func private @id_begin(%task: !ptr, %item: index) -> index {
  %first = call @nsg_lookup_task.first_id(%task) : (!ptr) -> index
  %pooled = call @NSG_POOLED() : () -> i32
  %is_pooled = call @has_flag(%task, %pooled) : (!ptr, i32) -> i1
  %begin = scf.if %is_pooled -> (index) {
    %fixed = func.call @NSG_FIXED() : () -> i32
    %is_fixed = func.call @has_flag(%task, %fixed) : (!ptr, i32) -> i1
    %of_bag = scf.if %is_fixed -> (index) {
      %pooling = func.call @nsg_lookup_task.pooling(%task) : (!ptr) -> index
      %before = arith.muli %item, %pooling : index
      %place = arith.addi %first, %before : index
      scf.yield %place : index
    } else {
      %offsets = func.call @nsg_lookup_task.offsets(%task) : (!ptr) -> !ptr
      %offset = func.call @load_i64(%offsets, %item) : (!ptr, index) -> i64
      %place = arith.index_cast %offset : i64 to index
      scf.yield %place : index
    }
    scf.yield %of_bag : index
  } else {
    %place = arith.addi %first, %item : index
    scf.yield %place : index
  }
  return %begin : index
}

// The row of an id in its slot; as an unsigned number it is out of range for a bad id and for
// padding.
func.func private @row_of(%task: !ptr, %position: index, %is_long: i1) -> i64 {
  %ids = call @nsg_lookup_task.ids(%task) : (!ptr) -> !ptr
  %id = scf.if %is_long -> (i64) {
    %long = func.call @load_i64(%ids, %position) : (!ptr, index) -> i64
    scf.yield %long : i64
  } else {
    %short = func.call @load_i32(%ids, %position) : (!ptr, index) -> i32
    %long = arith.extsi %short : i32 to i64
    scf.yield %long : i64
  }
  %row_begin = call @nsg_lookup_task.row_begin(%task) : (!ptr) -> i64
  %own = arith.subi %id, %row_begin : i64
  %padding = call @nsg_lookup_task.padding(%task) : (!ptr) -> i64
  %is_padding = arith.cmpi eq, %id, %padding : i64
  %none = arith.constant -1 : i64
  %row = arith.select %is_padding, %none, %own : i64
  return %row : i64
}

// nsg_expand: the key of every id, the place of its gradient and a factor.

// The key of a row; a bad id gets a key that no row has, so it updates nothing.
func.func private @write_key(%task: !ptr, %positions: !ptr, %position: index, %row: i64) {
  %rows = call @nsg_lookup_task.rows(%task) : (!ptr) -> i64
  %is_good = arith.cmpi ult, %row, %rows : i64
  %key_begin = call @nsg_lookup_task.key_begin(%task) : (!ptr) -> i64
  %own = arith.addi %row, %key_begin : i64
  %none = arith.constant -1 : i64
  %key = arith.select %is_good, %own, %none : i64
  %keys = call @nsg_positions.keys(%positions) : (!ptr) -> !ptr
  %bytes = call @nsg_positions.key_bytes(%positions) : (!ptr) -> i32
  %four = arith.constant 4 : i32
  %is_short = arith.cmpi eq, %bytes, %four : i32
  scf.if %is_short {
    %short = arith.trunci %key : i64 to i32
    func.call @store_i32(%keys, %position, %short) : (!ptr, index, i32) -> ()
  } else {
    func.call @store_i64(%keys, %position, %key) : (!ptr, index, i64) -> ()
  }
  return
}

// The sample weight, or 1, divided by the number of the bag's ids if the lookup is a mean. Without
// an array of factors there is nothing to write.
func.func private @write_factor(%task: !ptr, %positions: !ptr, %position: index, %id: index,
                                %count: index) {
  %factors = call @nsg_positions.factors(%positions) : (!ptr) -> !ptr
  %null = llvm.mlir.zero : !ptr
  %is_wanted = llvm.icmp "ne" %factors, %null : !ptr
  scf.if %is_wanted {
    %one = arith.constant 1.0 : f32
    %weighted = func.call @NSG_WEIGHTED() : () -> i32
    %is_weighted = func.call @has_flag(%task, %weighted) : (!ptr, i32) -> i1
    %weight = scf.if %is_weighted -> (f32) {
      %weights = func.call @nsg_lookup_task.sample_weights(%task) : (!ptr) -> !ptr
      %own = func.call @load_f32(%weights, %id) : (!ptr, index) -> f32
      scf.yield %own : f32
    } else {
      scf.yield %one : f32
    }
    %count_i64 = arith.index_cast %count : index to i64
    %count_f32 = arith.uitofp %count_i64 : i64 to f32
    %mean = func.call @NSG_MEAN() : () -> i32
    %is_mean = func.call @has_flag(%task, %mean) : (!ptr, i32) -> i1
    %divisor = arith.select %is_mean, %count_f32, %one : f32
    %factor = arith.divf %weight, %divisor : f32
    func.call @store_f32(%factors, %position, %factor) : (!ptr, index, f32) -> ()
  }
  return
}

// Every `step`-th id of an item, from number `from` on.
func.func private @expand_item(%task: !ptr, %positions: !ptr, %item: index, %from: index,
                               %step: index) {
  %one = arith.constant 1 : index
  %next = arith.addi %item, %one : index
  %first = call @id_begin(%task, %item) : (!ptr, index) -> index
  %limit = call @id_begin(%task, %next) : (!ptr, index) -> index
  %count = arith.subi %limit, %first : index
  %position_begin = call @nsg_lookup_task.position_begin(%task) : (!ptr) -> index
  %stride = call @nsg_lookup_task.gradient_stride(%task) : (!ptr) -> index
  %gradient_begin = call @nsg_lookup_task.gradient_begin(%task) : (!ptr) -> index
  %before = arith.muli %item, %stride : index
  %place = arith.addi %gradient_begin, %before : index
  %place_i64 = arith.index_cast %place : index to i64
  %places = call @nsg_positions.gradient_offsets(%positions) : (!ptr) -> !ptr
  %own_first = arith.addi %first, %from : index
  scf.for %id = %own_first to %limit step %step {
    %position = arith.addi %position_begin, %id : index
    %id64 = func.call @NSG_ID64() : () -> i32
    %is_long = func.call @has_flag(%task, %id64) : (!ptr, i32) -> i1
    %row = func.call @row_of(%task, %id, %is_long) : (!ptr, index, i1) -> i64
    func.call @write_key(%task, %positions, %position, %row) : (!ptr, !ptr, index, i64) -> ()
    func.call @store_i64(%places, %position, %place_i64) : (!ptr, index, i64) -> ()
    func.call @write_factor(%task, %positions, %position, %id, %count)
      : (!ptr, !ptr, index, index, index) -> ()
  }
  return
}

gpu.func @nsg_expand(%tasks: !ptr, %task_of_block: !ptr, %positions: !ptr) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %block_i64 = arith.index_cast %block : index to i64
  %number_at = llvm.getelementptr %task_of_block[%block_i64] : (!ptr, i64) -> !ptr, i32
  %number_i32 = llvm.load %number_at invariant {alignment = 4 : i64} : !ptr -> i32
  %task_number = arith.index_cast %number_i32 : i32 to index
  %task = func.call @nsg_lookup_task.at(%tasks, %task_number) : (!ptr, index) -> !ptr
  %first_block = func.call @nsg_lookup_task.first_expand_block(%task) : (!ptr) -> index
  %block_of_task = arith.subi %block, %first_block : index
  %block_items = func.call @NSG_EXPAND_ITEMS() : () -> index
  %block_threads = func.call @NSG_THREADS() : () -> index
  %item_threads = arith.divui %block_threads, %block_items : index
  %before = arith.muli %block_of_task, %block_items : index
  %item_of_block = arith.divui %thread, %item_threads : index
  %item = arith.addi %before, %item_of_block : index
  %thread_of_item = arith.remui %thread, %item_threads : index
  %items = func.call @nsg_lookup_task.items(%task) : (!ptr) -> index
  %is_there = arith.cmpi ult, %item, %items : index
  scf.if %is_there {
    func.call @expand_item(%task, %positions, %item, %thread_of_item, %item_threads)
      : (!ptr, !ptr, index, index, index) -> ()
  }
  gpu.return
}

// nsg_ranges: where each slot's runs begin.

// The number of distinct keys below `key`, by bisection.
func.func private @count_below(%sorted: !ptr, %num_runs: index, %key: i64) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %bytes = call @nsg_sorted.key_bytes(%sorted) : (!ptr) -> i32
  %four = arith.constant 4 : i32
  %is_short = arith.cmpi eq, %bytes, %four : i32
  %keys = call @nsg_sorted.keys(%sorted) : (!ptr) -> !ptr
  %count, %end = scf.while (%low = %zero, %high = %num_runs) : (index, index) -> (index, index) {
    %goes_on = arith.cmpi ult, %low, %high : index
    scf.condition(%goes_on) %low, %high : index, index
  } do {
  ^bb0(%low: index, %high: index):
    %sum = arith.addi %low, %high : index
    %middle = arith.divui %sum, %two : index
    %found = scf.if %is_short -> (i64) {
      %short = func.call @load_i32(%keys, %middle) : (!ptr, index) -> i32
      %long = arith.extui %short : i32 to i64
      scf.yield %long : i64
    } else {
      %long = func.call @load_i64(%keys, %middle) : (!ptr, index) -> i64
      scf.yield %long : i64
    }
    %is_below = arith.cmpi ult, %found, %key : i64
    %next = arith.addi %middle, %one : index
    %new_low = arith.select %is_below, %next, %low : index
    %new_high = arith.select %is_below, %high, %middle : index
    scf.yield %new_low, %new_high : index, index
  }
  return %count : index
}

// A thread for each slot, and one for the end of the last slot's keys.
gpu.func @nsg_ranges(%slots: !ptr, %num_slots_i32: i32, %sorted: !ptr) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %num_slots = arith.index_cast %num_slots_i32 : i32 to index
  %block_threads = func.call @NSG_THREADS() : () -> index
  %before = arith.muli %block, %block_threads : index
  %number = arith.addi %before, %thread : index
  %is_there = arith.cmpi ule, %number, %num_slots : index
  scf.if %is_there {
    %num_runs_at = func.call @nsg_sorted.num_runs(%sorted) : (!ptr) -> !ptr
    %num_runs_i32 = func.call @load_i32(%num_runs_at, %zero) : (!ptr, index) -> i32
    %num_runs = arith.index_cast %num_runs_i32 : i32 to index
    %is_slot = arith.cmpi ult, %number, %num_slots : index
    %key = scf.if %is_slot -> (i64) {
      %slot = func.call @nsg_slot.at(%slots, %number) : (!ptr, index) -> !ptr
      %begin = func.call @nsg_slot.key_begin(%slot) : (!ptr) -> i64
      scf.yield %begin : i64
    } else {
      %last = arith.subi %number, %one : index
      %slot = func.call @nsg_slot.at(%slots, %last) : (!ptr, index) -> !ptr
      %end = func.call @nsg_slot.key_end(%slot) : (!ptr) -> i64
      scf.yield %end : i64
    }
    %below = func.call @count_below(%sorted, %num_runs, %key) : (!ptr, index, i64) -> index
    %below_i32 = arith.index_cast %below : index to i32
    %run_begin = func.call @nsg_sorted.run_begin(%sorted) : (!ptr) -> !ptr
    func.call @store_i32(%run_begin, %number, %below_i32) : (!ptr, index, i32) -> ()
    %is_first = arith.cmpi eq, %number, %zero : index
    scf.if %is_first {
      %starts = func.call @nsg_sorted.starts(%sorted) : (!ptr) -> !ptr
      %count = func.call @nsg_sorted.num_positions(%sorted) : (!ptr) -> i64
      %count_i32 = arith.trunci %count : i64 to i32
      func.call @store_i32(%starts, %num_runs, %count_i32) : (!ptr, index, i32) -> ()
    }
  }
  gpu.return
}

// nsg_find_places: the keys of places of rows that are in caches.

// The number of parts that begin at a position or before it, by bisection.
func.func private @count_begun(%parts: !ptr, %num_parts: index, %position: index) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %count, %end = scf.while (%low = %zero, %high = %num_parts) : (index, index) -> (index, index) {
    %goes_on = arith.cmpi ult, %low, %high : index
    scf.condition(%goes_on) %low, %high : index, index
  } do {
  ^bb0(%low: index, %high: index):
    %sum = arith.addi %low, %high : index
    %middle = arith.divui %sum, %two : index
    %part = func.call @nsg_cached_part.at(%parts, %middle) : (!ptr, index) -> !ptr
    %begin = func.call @nsg_cached_part.position_begin(%part) : (!ptr) -> index
    %has_begun = arith.cmpi ule, %begin, %position : index
    %next = arith.addi %middle, %one : index
    %new_low = arith.select %has_begun, %next, %low : index
    %new_high = arith.select %has_begun, %high, %middle : index
    scf.yield %new_low, %new_high : index, index
  }
  return %count : index
}

// Replaces the key of a run by that of the place of its first id, which is number `number` of a
// part.
func.func private @write_place(%part: !ptr, %sorted: !ptr, %run: index, %number: index) {
  %four = arith.constant 4 : i32
  %places = call @nsg_cached_part.places(%part) : (!ptr) -> !ptr
  %id_bytes = call @nsg_cached_part.id_bytes(%part) : (!ptr) -> i32
  %is_short_id = arith.cmpi eq, %id_bytes, %four : i32
  %place = scf.if %is_short_id -> (i64) {
    %short = func.call @load_i32(%places, %number) : (!ptr, index) -> i32
    %long = arith.extsi %short : i32 to i64
    scf.yield %long : i64
  } else {
    %long = func.call @load_i64(%places, %number) : (!ptr, index) -> i64
    scf.yield %long : i64
  }
  %key_begin = call @nsg_cached_part.key_begin(%part) : (!ptr) -> i64
  %key = arith.addi %key_begin, %place : i64
  %keys = call @nsg_sorted.keys(%sorted) : (!ptr) -> !ptr
  %key_bytes = call @nsg_sorted.key_bytes(%sorted) : (!ptr) -> i32
  %is_short_key = arith.cmpi eq, %key_bytes, %four : i32
  scf.if %is_short_key {
    %short = arith.trunci %key : i64 to i32
    func.call @store_i32(%keys, %run, %short) : (!ptr, index, i32) -> ()
  } else {
    func.call @store_i64(%keys, %run, %key) : (!ptr, index, i64) -> ()
  }
  return
}

// A thread for each run. Parts come in the order of their positions.
gpu.func @nsg_find_places(%parts: !ptr, %num_parts_i32: i32, %sorted: !ptr) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %block_threads = func.call @NSG_THREADS() : () -> index
  %before = arith.muli %block, %block_threads : index
  %run = arith.addi %before, %thread : index
  %num_runs_at = func.call @nsg_sorted.num_runs(%sorted) : (!ptr) -> !ptr
  %num_runs_i32 = func.call @load_i32(%num_runs_at, %zero) : (!ptr, index) -> i32
  %num_runs = arith.index_cast %num_runs_i32 : i32 to index
  %is_there = arith.cmpi ult, %run, %num_runs : index
  scf.if %is_there {
    %starts = func.call @nsg_sorted.starts(%sorted) : (!ptr) -> !ptr
    %start_i32 = func.call @load_i32(%starts, %run) : (!ptr, index) -> i32
    %start = arith.index_cast %start_i32 : i32 to index
    %order = func.call @nsg_sorted.order(%sorted) : (!ptr) -> !ptr
    %position_i32 = func.call @load_i32(%order, %start) : (!ptr, index) -> i32
    %position = arith.index_cast %position_i32 : i32 to index
    %num_parts = arith.index_cast %num_parts_i32 : i32 to index
    %begun = func.call @count_begun(%parts, %num_parts, %position)
      : (!ptr, index, index) -> index
    %is_begun = arith.cmpi ugt, %begun, %zero : index
    scf.if %is_begun {
      %last = arith.subi %begun, %one : index
      %part = func.call @nsg_cached_part.at(%parts, %last) : (!ptr, index) -> !ptr
      %begin = func.call @nsg_cached_part.position_begin(%part) : (!ptr) -> index
      %end = func.call @nsg_cached_part.position_end(%part) : (!ptr) -> index
      %is_inside = arith.cmpi ult, %position, %end : index
      scf.if %is_inside {
        %number = arith.subi %position, %begin : index
        func.call @write_place(%part, %sorted, %run, %number)
          : (!ptr, !ptr, index, index) -> ()
      }
    }
  }
  gpu.return
}

}
