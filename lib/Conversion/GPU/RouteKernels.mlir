// The GPU kernels that move the values of an exchange. Written as IdKernels.mlir is, whose functions
// may be declared here, too.

!ptr = !llvm.ptr<1>

gpu.module @route_kernels {

func.func private @NSG_THREADS() -> index
func.func private @NSG_WARP() -> index
func.func private @NSG_MOVE_UNITS() -> index
func.func private @NSG_F32() -> i32
func.func private @NSG_F16() -> i32

func.func private @nsg_rows.at(!ptr, index) -> !ptr
func.func private @nsg_rows.first(!ptr) -> !ptr
func.func private @nsg_rows.stride(!ptr) -> i64

func.func private @nsg_move.at(!ptr, index) -> !ptr
func.func private @nsg_move.source(!ptr) -> !ptr
func.func private @nsg_move.target(!ptr) -> !ptr
func.func private @nsg_move.source_places(!ptr) -> !ptr
func.func private @nsg_move.target_places(!ptr) -> !ptr
func.func private @nsg_move.first_place(!ptr) -> i64
func.func private @nsg_move.addends(!ptr) -> !ptr
func.func private @nsg_move.divisors(!ptr) -> !ptr
func.func private @nsg_move.rows(!ptr) -> index
func.func private @nsg_move.width(!ptr) -> index
func.func private @nsg_move.unit_bytes(!ptr) -> i32
func.func private @nsg_move.num_addends(!ptr) -> index
func.func private @nsg_move.source_type(!ptr) -> i32
func.func private @nsg_move.target_type(!ptr) -> i32
func.func private @nsg_move.scale(!ptr) -> f32
func.func private @nsg_move.first_block(!ptr) -> index

func.func private @nsg_bags.at(!ptr, index) -> !ptr
func.func private @nsg_bags.lengths(!ptr) -> !ptr
func.func private @nsg_bags.offsets(!ptr) -> !ptr
func.func private @nsg_bags.bags(!ptr) -> index
func.func private @nsg_bags.total(!ptr) -> !ptr

func.func private @load_i32(!ptr, index) -> i32
func.func private @load_i64(!ptr, index) -> i64
func.func private @load_f32(!ptr, index) -> f32
func.func private @store_i64(!ptr, index, i64)

// nsg_move_rows: copies and sums of rows; those with scales are in ScaledKernels.mlir.

// Row `row` as a list of places numbers it; without a list, itself.
func.func private @place_of(%places: !ptr, %first_place: i64, %row: index) -> i64 {
  %null = llvm.mlir.zero : !ptr
  %is_listed = llvm.icmp "ne" %places, %null : !ptr
  %place = scf.if %is_listed -> (i64) {
    %listed = func.call @load_i64(%places, %row) : (!ptr, index) -> i64
    %own = arith.subi %listed, %first_place : i64
    scf.yield %own : i64
  } else {
    %own = arith.index_cast %row : index to i64
    scf.yield %own : i64
  }
  return %place : i64
}

// Unit `column` of a row.
func.func private @unit_at(%rows: !ptr, %place: i64, %column: index, %unit_bytes: i64) -> !ptr {
  %first = call @nsg_rows.first(%rows) : (!ptr) -> !ptr
  %stride = call @nsg_rows.stride(%rows) : (!ptr) -> i64
  %before = arith.muli %place, %stride : i64
  %column_i64 = arith.index_cast %column : index to i64
  %in_row = arith.muli %column_i64, %unit_bytes : i64
  %offset = arith.addi %before, %in_row : i64
  %address = llvm.getelementptr %first[%offset] : (!ptr, i64) -> !ptr, i8
  return %address : !ptr
}

func.func private @copy_unit(%source: !ptr, %target: !ptr, %unit_bytes: i64) {
  %c16 = arith.constant 16 : i64
  %c8 = arith.constant 8 : i64
  %c4 = arith.constant 4 : i64
  %is_16 = arith.cmpi eq, %unit_bytes, %c16 : i64
  scf.if %is_16 {
    %unit = llvm.load %source {alignment = 16 : i64} : !ptr -> vector<4xi32>
    llvm.store %unit, %target {alignment = 16 : i64} : vector<4xi32>, !ptr
  } else {
    %is_8 = arith.cmpi eq, %unit_bytes, %c8 : i64
    scf.if %is_8 {
      %unit = llvm.load %source {alignment = 8 : i64} : !ptr -> i64
      llvm.store %unit, %target {alignment = 8 : i64} : i64, !ptr
    } else {
      %is_4 = arith.cmpi eq, %unit_bytes, %c4 : i64
      scf.if %is_4 {
        %unit = llvm.load %source {alignment = 4 : i64} : !ptr -> i32
        llvm.store %unit, %target {alignment = 4 : i64} : i32, !ptr
      } else {
        %c2 = arith.constant 2 : i64
        %is_2 = arith.cmpi eq, %unit_bytes, %c2 : i64
        scf.if %is_2 {
          %unit = llvm.load %source {alignment = 2 : i64} : !ptr -> i16
          llvm.store %unit, %target {alignment = 2 : i64} : i16, !ptr
        } else {
          %unit = llvm.load %source {alignment = 1 : i64} : !ptr -> i8
          llvm.store %unit, %target {alignment = 1 : i64} : i8, !ptr
        }
      }
    }
  }
  return
}

func.func private @load_value(%source: !ptr, %type: i32) -> f32 {
  %f32 = call @NSG_F32() : () -> i32
  %is_f32 = arith.cmpi eq, %type, %f32 : i32
  %value = scf.if %is_f32 -> (f32) {
    %own = llvm.load %source {alignment = 4 : i64} : !ptr -> f32
    scf.yield %own : f32
  } else {
    %f16 = func.call @NSG_F16() : () -> i32
    %is_f16 = arith.cmpi eq, %type, %f16 : i32
    %wide = scf.if %is_f16 -> (f32) {
      %half = llvm.load %source {alignment = 2 : i64} : !ptr -> f16
      %own = arith.extf %half : f16 to f32
      scf.yield %own : f32
    } else {
      %half = llvm.load %source {alignment = 2 : i64} : !ptr -> bf16
      %own = arith.extf %half : bf16 to f32
      scf.yield %own : f32
    }
    scf.yield %wide : f32
  }
  return %value : f32
}

func.func private @store_value(%value: f32, %target: !ptr, %type: i32) {
  %f32 = call @NSG_F32() : () -> i32
  %is_f32 = arith.cmpi eq, %type, %f32 : i32
  scf.if %is_f32 {
    llvm.store %value, %target {alignment = 4 : i64} : f32, !ptr
  } else {
    %f16 = func.call @NSG_F16() : () -> i32
    %is_f16 = arith.cmpi eq, %type, %f16 : i32
    scf.if %is_f16 {
      %half = arith.truncf %value : f32 to f16
      llvm.store %half, %target {alignment = 2 : i64} : f16, !ptr
    } else {
      %half = arith.truncf %value : f32 to bf16
      llvm.store %half, %target {alignment = 2 : i64} : bf16, !ptr
    }
  }
  return
}

func.func private @bytes_of(%type: i32) -> i64 {
  %two = arith.constant 2 : i64
  %four = arith.constant 4 : i64
  %f32 = call @NSG_F32() : () -> i32
  %is_f32 = arith.cmpi eq, %type, %f32 : i32
  %bytes = arith.select %is_f32, %four, %two : i64
  return %bytes : i64
}

// The source and the addends at one place, added up in this order.
func.func private @add_sources(%move: !ptr, %place: i64, %column: index) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %type = call @nsg_move.source_type(%move) : (!ptr) -> i32
  %bytes = call @bytes_of(%type) : (i32) -> i64
  %source = call @nsg_move.source(%move) : (!ptr) -> !ptr
  %first_at = call @unit_at(%source, %place, %column, %bytes) : (!ptr, i64, index, i64) -> !ptr
  %first = call @load_value(%first_at, %type) : (!ptr, i32) -> f32
  %addends = call @nsg_move.addends(%move) : (!ptr) -> !ptr
  %num_addends = call @nsg_move.num_addends(%move) : (!ptr) -> index
  %sum = scf.for %i = %zero to %num_addends step %one iter_args(%before = %first) -> (f32) {
    %addend = func.call @nsg_rows.at(%addends, %i) : (!ptr, index) -> !ptr
    %at = func.call @unit_at(%addend, %place, %column, %bytes) : (!ptr, i64, index, i64) -> !ptr
    %value = func.call @load_value(%at, %type) : (!ptr, i32) -> f32
    %next = arith.addf %before, %value : f32
    scf.yield %next : f32
  }
  return %sum : f32
}

func.func private @divide(%move: !ptr, %row: index, %value: f32) -> f32 {
  %divisors = call @nsg_move.divisors(%move) : (!ptr) -> !ptr
  %null = llvm.mlir.zero : !ptr
  %divides = llvm.icmp "ne" %divisors, %null : !ptr
  %quotient = scf.if %divides -> (f32) {
    %none = arith.constant 0.0 : f32
    %divisor = func.call @load_f32(%divisors, %row) : (!ptr, index) -> f32
    %is_none = arith.cmpf oeq, %divisor, %none : f32
    %divided = arith.divf %value, %divisor : f32
    %own = arith.select %is_none, %value, %divided : f32
    scf.yield %own : f32
  } else {
    scf.yield %value : f32
  }
  return %quotient : f32
}

// One unit of a move.
func.func private @move_unit(%move: !ptr, %row: index, %column: index) {
  %first_place = call @nsg_move.first_place(%move) : (!ptr) -> i64
  %source_places = call @nsg_move.source_places(%move) : (!ptr) -> !ptr
  %from = call @place_of(%source_places, %first_place, %row) : (!ptr, i64, index) -> i64
  %target_places = call @nsg_move.target_places(%move) : (!ptr) -> !ptr
  %to = call @place_of(%target_places, %first_place, %row) : (!ptr, i64, index) -> i64
  %target = call @nsg_move.target(%move) : (!ptr) -> !ptr
  %zero = arith.constant 0 : i32
  %unit_i32 = call @nsg_move.unit_bytes(%move) : (!ptr) -> i32
  %is_sum = arith.cmpi eq, %unit_i32, %zero : i32
  scf.if %is_sum {
    %sum = func.call @add_sources(%move, %from, %column) : (!ptr, i64, index) -> f32
    %quotient = func.call @divide(%move, %row, %sum) : (!ptr, index, f32) -> f32
    %scale = func.call @nsg_move.scale(%move) : (!ptr) -> f32
    %value = arith.mulf %quotient, %scale : f32
    %type = func.call @nsg_move.target_type(%move) : (!ptr) -> i32
    %bytes = func.call @bytes_of(%type) : (i32) -> i64
    %at = func.call @unit_at(%target, %to, %column, %bytes) : (!ptr, i64, index, i64) -> !ptr
    func.call @store_value(%value, %at, %type) : (f32, !ptr, i32) -> ()
  } else {
    %unit = arith.extsi %unit_i32 : i32 to i64
    %source = func.call @nsg_move.source(%move) : (!ptr) -> !ptr
    %source_at = func.call @unit_at(%source, %from, %column, %unit)
      : (!ptr, i64, index, i64) -> !ptr
    %target_at = func.call @unit_at(%target, %to, %column, %unit) : (!ptr, i64, index, i64) -> !ptr
    func.call @copy_unit(%source_at, %target_at, %unit) : (!ptr, !ptr, i64) -> ()
  }
  return
}

// The last move whose blocks begin at this one or before, by bisection.
func.func private @move_of_block(%moves: !ptr, %num_moves_i32: i32, %block: index) -> !ptr {
  %num_moves = arith.index_cast %num_moves_i32 : i32 to index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %number, %end = scf.while (%low = %zero, %high = %num_moves) : (index, index) -> (index, index) {
    %length = arith.subi %high, %low : index
    %goes_on = arith.cmpi ugt, %length, %one : index
    scf.condition(%goes_on) %low, %high : index, index
  } do {
  ^bb0(%low: index, %high: index):
    %sum = arith.addi %low, %high : index
    %middle = arith.divui %sum, %two : index
    %other = func.call @nsg_move.at(%moves, %middle) : (!ptr, index) -> !ptr
    %begin_of_other = func.call @nsg_move.first_block(%other) : (!ptr) -> index
    %is_after = arith.cmpi ugt, %begin_of_other, %block : index
    %new_low = arith.select %is_after, %low, %middle : index
    %new_high = arith.select %is_after, %middle, %high : index
    scf.yield %new_low, %new_high : index, index
  }
  %move = call @nsg_move.at(%moves, %number) : (!ptr, index) -> !ptr
  return %move : !ptr
}

gpu.func @nsg_move_rows(%moves: !ptr, %num_moves: i32) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %move = func.call @move_of_block(%moves, %num_moves, %block) : (!ptr, i32, index) -> !ptr
  %first_block = func.call @nsg_move.first_block(%move) : (!ptr) -> index
  %block_of_move = arith.subi %block, %first_block : index
  %size = func.call @NSG_MOVE_UNITS() : () -> index
  %begin = arith.muli %block_of_move, %size : index
  %rows = func.call @nsg_move.rows(%move) : (!ptr) -> index
  %width = func.call @nsg_move.width(%move) : (!ptr) -> index
  %units = arith.muli %rows, %width : index
  %left = arith.subi %units, %begin : index
  %count = arith.minui %left, %size : index
  // Where the block's first unit is in its row. From there 32 bits are enough, which divide faster.
  %first_row = arith.divui %begin, %width : index
  %first_column = arith.remui %begin, %width : index
  %column_i32 = arith.index_cast %first_column : index to i32
  %width_i32 = arith.index_cast %width : index to i32
  %threads = func.call @NSG_THREADS() : () -> index
  scf.for %i = %thread to %count step %threads {
    %i_i32 = arith.index_cast %i : index to i32
    %place = arith.addi %column_i32, %i_i32 : i32
    %rows_before = arith.divui %place, %width_i32 : i32
    %in_row = arith.remui %place, %width_i32 : i32
    %rows_index = arith.index_castui %rows_before : i32 to index
    %row = arith.addi %first_row, %rows_index : index
    %column = arith.index_castui %in_row : i32 to index
    func.call @move_unit(%move, %row, %column) : (!ptr, index, index) -> ()
  }
  gpu.return
}

// nsg_add_up: offsets of bags. A warp goes through a set.

// Shuffles are of 32 bits.
func.func private @halves_of(%value: i64) -> (i32, i32) {
  %c32 = arith.constant 32 : i64
  %low = arith.trunci %value : i64 to i32
  %shifted = arith.shrui %value, %c32 : i64
  %high = arith.trunci %shifted : i64 to i32
  return %low, %high : i32, i32
}

func.func private @join(%low: i32, %high: i32) -> i64 {
  %c32 = arith.constant 32 : i64
  %low_i64 = arith.extui %low : i32 to i64
  %high_i64 = arith.extui %high : i32 to i64
  %shifted = arith.shli %high_i64, %c32 : i64
  %value = arith.ori %shifted, %low_i64 : i64
  return %value : i64
}

// The value of the lane `distance` before this one, which must be there.
func.func private @from_before(%value: i64, %distance: i32) -> i64 {
  %lanes = arith.constant 32 : i32
  %low, %high = call @halves_of(%value) : (i64) -> (i32, i32)
  %other_low, %low_valid = gpu.shuffle up %low, %distance, %lanes : i32
  %other_high, %high_valid = gpu.shuffle up %high, %distance, %lanes : i32
  %other = call @join(%other_low, %other_high) : (i32, i32) -> i64
  return %other : i64
}

// What the last lane has.
func.func private @from_last(%value: i64) -> i64 {
  %lanes = arith.constant 32 : i32
  %last = arith.constant 31 : i32
  %low, %high = call @halves_of(%value) : (i64) -> (i32, i32)
  %other_low, %low_valid = gpu.shuffle idx %low, %last, %lanes : i32
  %other_high, %high_valid = gpu.shuffle idx %high, %last, %lanes : i32
  %other = call @join(%other_low, %other_high) : (i32, i32) -> i64
  return %other : i64
}

// The sum of the values of this lane and those before it.
func.func private @sum_of_lanes(%own: i64, %lane: index) -> i64 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 5 : index
  %nothing = arith.constant 0 : i64
  %one_i32 = arith.constant 1 : i32
  %sum = scf.for %step = %zero to %steps step %one iter_args(%before = %own) -> (i64) {
    %step_i32 = arith.index_cast %step : index to i32
    %distance = arith.shli %one_i32, %step_i32 : i32
    %other = func.call @from_before(%before, %distance) : (i64, i32) -> i64
    %distance_index = arith.index_cast %distance : i32 to index
    %is_there = arith.cmpi uge, %lane, %distance_index : index
    %addend = arith.select %is_there, %other, %nothing : i64
    %next = arith.addi %before, %addend : i64
    scf.yield %next : i64
  }
  return %sum : i64
}

// 0 for a bag that is not there.
func.func private @length_of(%lengths: !ptr, %bag: index, %bags: index) -> i64 {
  %is_there = arith.cmpi ult, %bag, %bags : index
  %length = scf.if %is_there -> (i64) {
    %short = func.call @load_i32(%lengths, %bag) : (!ptr, index) -> i32
    %long = arith.extsi %short : i32 to i64
    scf.yield %long : i64
  } else {
    %nothing = arith.constant 0 : i64
    scf.yield %nothing : i64
  }
  return %length : i64
}

func.func private @store_offset(%offsets: !ptr, %bag: index, %bags: index, %offset: i64) {
  %is_there = arith.cmpi ult, %bag, %bags : index
  scf.if %is_there {
    func.call @store_i64(%offsets, %bag, %offset) : (!ptr, index, i64) -> ()
  }
  return
}

func.func private @add_up_bags(%set: !ptr, %lane: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %nothing = arith.constant 0 : i64
  %warp = call @NSG_WARP() : () -> index
  %step = arith.muli %warp, %four : index
  %lengths = call @nsg_bags.lengths(%set) : (!ptr) -> !ptr
  %offsets = call @nsg_bags.offsets(%set) : (!ptr) -> !ptr
  %bags = call @nsg_bags.bags(%set) : (!ptr) -> index
  %lane_begin = arith.muli %lane, %four : index
  %all = scf.for %first = %zero to %bags step %step iter_args(%before = %nothing) -> (i64) {
    // Four bags to each lane: their loads do not wait for each other.
    %bag0 = arith.addi %first, %lane_begin : index
    %bag1 = arith.addi %bag0, %one : index
    %bag2 = arith.addi %bag1, %one : index
    %bag3 = arith.addi %bag2, %one : index
    %length0 = func.call @length_of(%lengths, %bag0, %bags) : (!ptr, index, index) -> i64
    %length1 = func.call @length_of(%lengths, %bag1, %bags) : (!ptr, index, index) -> i64
    %length2 = func.call @length_of(%lengths, %bag2, %bags) : (!ptr, index, index) -> i64
    %length3 = func.call @length_of(%lengths, %bag3, %bags) : (!ptr, index, index) -> i64
    %two_bags = arith.addi %length0, %length1 : i64
    %three_bags = arith.addi %two_bags, %length2 : i64
    %own = arith.addi %three_bags, %length3 : i64
    %sum = func.call @sum_of_lanes(%own, %lane) : (i64, index) -> i64
    %others = arith.subi %sum, %own : i64
    %offset0 = arith.addi %before, %others : i64
    %offset1 = arith.addi %offset0, %length0 : i64
    %offset2 = arith.addi %offset0, %two_bags : i64
    %offset3 = arith.addi %offset0, %three_bags : i64
    func.call @store_offset(%offsets, %bag0, %bags, %offset0) : (!ptr, index, index, i64) -> ()
    func.call @store_offset(%offsets, %bag1, %bags, %offset1) : (!ptr, index, index, i64) -> ()
    func.call @store_offset(%offsets, %bag2, %bags, %offset2) : (!ptr, index, index, i64) -> ()
    func.call @store_offset(%offsets, %bag3, %bags, %offset3) : (!ptr, index, index, i64) -> ()
    %of_warp = func.call @from_last(%sum) : (i64) -> i64
    %next = arith.addi %before, %of_warp : i64
    scf.yield %next : i64
  }
  %is_first = arith.cmpi eq, %lane, %zero : index
  scf.if %is_first {
    func.call @store_i64(%offsets, %bags, %all) : (!ptr, index, i64) -> ()
    %total = func.call @nsg_bags.total(%set) : (!ptr) -> !ptr
    %null = llvm.mlir.zero : !ptr
    %is_wanted = llvm.icmp "ne" %total, %null : !ptr
    scf.if %is_wanted {
      func.call @store_i64(%total, %zero, %all) : (!ptr, index, i64) -> ()
    }
  }
  return
}

gpu.func @nsg_add_up(%sets: !ptr, %num_sets_i32: i32) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %num_sets = arith.index_cast %num_sets_i32 : i32 to index
  %threads = func.call @NSG_THREADS() : () -> index
  %warp = func.call @NSG_WARP() : () -> index
  %before = arith.muli %block, %threads : index
  %number = arith.addi %before, %thread : index
  %set_number = arith.divui %number, %warp : index
  %lane = arith.remui %thread, %warp : index
  %is_there = arith.cmpi ult, %set_number, %num_sets : index
  scf.if %is_there {
    %set = func.call @nsg_bags.at(%sets, %set_number) : (!ptr, index) -> !ptr
    func.call @add_up_bags(%set, %lane) : (!ptr, index) -> ()
  }
  gpu.return
}

}
