// The GPU kernel that moves rows whose values are multiples of a scale in front of them: bytes of int8
// or fp8 (e4m3). Written as IdKernels.mlir is; functions of the other texts are declared here. The
// arithmetic is that of Runtime/Numerics.h, in the same order.

!ptr = !llvm.ptr<1>

gpu.module @scaled_kernels {

func.func private @NSG_THREADS() -> index
func.func private @NSG_WARP() -> index
func.func private @NSG_SCALED_ROWS() -> index
func.func private @NSG_INT8() -> i32

func.func private @nsg_rows.at(!ptr, index) -> !ptr
func.func private @nsg_rows.scale(!ptr) -> i64

func.func private @nsg_move.source(!ptr) -> !ptr
func.func private @nsg_move.target(!ptr) -> !ptr
func.func private @nsg_move.source_places(!ptr) -> !ptr
func.func private @nsg_move.target_places(!ptr) -> !ptr
func.func private @nsg_move.first_place(!ptr) -> i64
func.func private @nsg_move.addends(!ptr) -> !ptr
func.func private @nsg_move.rows(!ptr) -> index
func.func private @nsg_move.width(!ptr) -> index
func.func private @nsg_move.num_addends(!ptr) -> index
func.func private @nsg_move.source_type(!ptr) -> i32
func.func private @nsg_move.target_type(!ptr) -> i32
func.func private @nsg_move.scale(!ptr) -> f32
func.func private @nsg_move.first_block(!ptr) -> index

func.func private @move_of_block(!ptr, i32, index) -> !ptr
func.func private @place_of(!ptr, i64, index) -> i64
func.func private @unit_at(!ptr, i64, index, i64) -> !ptr
func.func private @bytes_of(i32) -> i64
func.func private @load_value(!ptr, i32) -> f32
func.func private @store_value(f32, !ptr, i32)
func.func private @divide(!ptr, index, f32) -> f32

func.func private @is_scaled(%format: i32) -> i1 {
  %int8 = call @NSG_INT8() : () -> i32
  %is_scaled = arith.cmpi uge, %format, %int8 : i32
  return %is_scaled : i1
}

func.func private @is_int8(%format: i32) -> i1 {
  %int8 = call @NSG_INT8() : () -> i32
  %is_int8 = arith.cmpi eq, %format, %int8 : i32
  return %is_int8 : i1
}

func.func private @from_fp8(%byte: i8) -> f32 {
  %bits = arith.extui %byte : i8 to i32
  %sign_mask = arith.constant 0x80 : i32
  %magnitude_mask = arith.constant 0x7f : i32
  %sign_shift = arith.constant 24 : i32
  %shift = arith.constant 20 : i32
  %bias = arith.constant 1006632960 : i32 // 120 << 23
  %eight = arith.constant 8 : i32
  %last_place = arith.constant 0.001953125 : f32 // 2^-9
  %sign_bit = arith.andi %bits, %sign_mask : i32
  %sign = arith.shli %sign_bit, %sign_shift : i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %whole = arith.sitofp %magnitude : i32 to f32
  %subnormal = arith.mulf %whole, %last_place : f32
  %subnormal_bits = arith.bitcast %subnormal : f32 to i32
  %mantissa = arith.shli %magnitude, %shift : i32
  %normal_bits = arith.addi %mantissa, %bias : i32
  %is_subnormal = arith.cmpi ult, %magnitude, %eight : i32
  %unsigned = arith.select %is_subnormal, %subnormal_bits, %normal_bits : i32
  %signed = arith.ori %unsigned, %sign : i32
  %value = arith.bitcast %signed : i32 to f32
  return %value : f32
}

// A quotient to the nearest e4m3, ties to even.
func.func private @to_fp8(%quotient: f32) -> i8 {
  %sign_shift = arith.constant 24 : i32
  %sign_mask = arith.constant 0x80 : i32
  %magnitude_mask = arith.constant 0x7fffffff : i32
  %shift = arith.constant 20 : i32
  %one = arith.constant 1 : i32
  %half = arith.constant 0x7ffff : i32
  %bias = arith.constant 960 : i32 // 120 << 3
  %least_normal = arith.constant 0x3c800000 : i32 // 2^-6
  %largest = arith.constant 0x7e : i32
  // In [2^14, 2^15) the last place of f32 is that of a subnormal e4m3, 2^-9.
  %round = arith.constant 16384.0 : f32
  %round_bits = arith.constant 0x46800000 : i32
  %bits = arith.bitcast %quotient : f32 to i32
  %high = arith.shrui %bits, %sign_shift : i32
  %sign = arith.andi %high, %sign_mask : i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %absolute = arith.bitcast %magnitude : i32 to f32
  %sum = arith.addf %absolute, %round : f32
  %sum_bits = arith.bitcast %sum : f32 to i32
  %subnormal = arith.subi %sum_bits, %round_bits : i32
  %last = arith.shrui %magnitude, %shift : i32
  %is_odd = arith.andi %last, %one : i32
  %raised = arith.addi %magnitude, %half : i32
  %rounded = arith.addi %raised, %is_odd : i32
  %kept = arith.shrui %rounded, %shift : i32
  %normal = arith.subi %kept, %bias : i32
  %is_subnormal = arith.cmpi ult, %magnitude, %least_normal : i32
  %result = arith.select %is_subnormal, %subnormal, %normal : i32
  %bounded = arith.minui %result, %largest : i32
  %signed = arith.ori %bounded, %sign : i32
  %byte = arith.trunci %signed : i32 to i8
  return %byte : i8
}

// A quotient to the nearest integer in [-127, 127], ties to even.
func.func private @to_int8(%quotient: f32) -> i8 {
  %largest = arith.constant 127.0 : f32
  %least = arith.constant -127.0 : f32
  // In [2^23, 2^24) the last place of f32 is 1.
  %round = arith.constant 12582912.0 : f32
  %is_less = arith.cmpf olt, %quotient, %least : f32
  %from_least = arith.select %is_less, %least, %quotient : f32
  %is_more = arith.cmpf ogt, %from_least, %largest : f32
  %bounded = arith.select %is_more, %largest, %from_least : f32
  %sum = arith.addf %bounded, %round : f32
  %bits = arith.bitcast %sum : f32 to i32
  %byte = arith.trunci %bits : i32 to i8
  return %byte : i8
}

// Value `column` of a row of a source.
func.func private @load_from(%rows: !ptr, %place: i64, %column: index, %format: i32) -> f32 {
  %bytes = call @bytes_of_value(%format) : (i32) -> i64
  %at = call @unit_at(%rows, %place, %column, %bytes) : (!ptr, i64, index, i64) -> !ptr
  %has_scale = call @is_scaled(%format) : (i32) -> i1
  %value = scf.if %has_scale -> (f32) {
    %zero = arith.constant 0 : index
    %none = arith.constant 0 : i64
    %begin = func.call @unit_at(%rows, %place, %zero, %bytes) : (!ptr, i64, index, i64) -> !ptr
    %before = func.call @nsg_rows.scale(%rows) : (!ptr) -> i64
    %back = arith.subi %none, %before : i64
    %scale_at = llvm.getelementptr %begin[%back] : (!ptr, i64) -> !ptr, i8
    %scale = llvm.load %scale_at {alignment = 1 : i64} : !ptr -> f32
    %byte = llvm.load %at {alignment = 1 : i64} : !ptr -> i8
    %int8 = func.call @is_int8(%format) : (i32) -> i1
    %multiple = scf.if %int8 -> (f32) {
      %own = arith.sitofp %byte : i8 to f32
      scf.yield %own : f32
    } else {
      %own = func.call @from_fp8(%byte) : (i8) -> f32
      scf.yield %own : f32
    }
    %own = arith.mulf %multiple, %scale : f32
    scf.yield %own : f32
  } else {
    %own = func.call @load_value(%at, %format) : (!ptr, i32) -> f32
    scf.yield %own : f32
  }
  return %value : f32
}

func.func private @bytes_of_value(%format: i32) -> i64 {
  %one = arith.constant 1 : i64
  %bytes = call @bytes_of(%format) : (i32) -> i64
  %has_scale = call @is_scaled(%format) : (i32) -> i1
  %own = arith.select %has_scale, %one, %bytes : i64
  return %own : i64
}

// What a move computes for one value of the target.
func.func private @value_of(%move: !ptr, %row: index, %column: index) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first_place = call @nsg_move.first_place(%move) : (!ptr) -> i64
  %places = call @nsg_move.source_places(%move) : (!ptr) -> !ptr
  %from = call @place_of(%places, %first_place, %row) : (!ptr, i64, index) -> i64
  %format = call @nsg_move.source_type(%move) : (!ptr) -> i32
  %source = call @nsg_move.source(%move) : (!ptr) -> !ptr
  %first = call @load_from(%source, %from, %column, %format) : (!ptr, i64, index, i32) -> f32
  %addends = call @nsg_move.addends(%move) : (!ptr) -> !ptr
  %num_addends = call @nsg_move.num_addends(%move) : (!ptr) -> index
  %sum = scf.for %i = %zero to %num_addends step %one iter_args(%before = %first) -> (f32) {
    %addend = func.call @nsg_rows.at(%addends, %i) : (!ptr, index) -> !ptr
    %value = func.call @load_from(%addend, %from, %column, %format)
      : (!ptr, i64, index, i32) -> f32
    %next = arith.addf %before, %value : f32
    scf.yield %next : f32
  }
  %quotient = call @divide(%move, %row, %sum) : (!ptr, index, f32) -> f32
  %scale = call @nsg_move.scale(%move) : (!ptr) -> f32
  %value = arith.mulf %quotient, %scale : f32
  return %value : f32
}

// The largest magnitude of a row, as bits, which have its order. All lanes of a warp get it.
func.func private @largest_of(%move: !ptr, %row: index, %lane: index) -> i32 {
  %none = arith.constant 0 : i32
  %mask = arith.constant 0x7fffffff : i32
  %width = call @nsg_move.width(%move) : (!ptr) -> index
  %warp = call @NSG_WARP() : () -> index
  %own = scf.for %column = %lane to %width step %warp iter_args(%before = %none) -> (i32) {
    %value = func.call @value_of(%move, %row, %column) : (!ptr, index, index) -> f32
    %bits = arith.bitcast %value : f32 to i32
    %magnitude = arith.andi %bits, %mask : i32
    %next = arith.maxui %before, %magnitude : i32
    scf.yield %next : i32
  }
  %lanes = arith.constant 32 : i32
  %zero = arith.constant 0 : index
  %five = arith.constant 5 : index
  %one = arith.constant 1 : index
  %largest = scf.for %i = %zero to %five step %one iter_args(%before = %own) -> (i32) {
    %i_i32 = arith.index_cast %i : index to i32
    %bit = arith.constant 1 : i32
    %distance = arith.shli %bit, %i_i32 : i32
    %other, %valid = gpu.shuffle xor %before, %distance, %lanes : i32
    %next = arith.maxui %before, %other : i32
    scf.yield %next : i32
  }
  return %largest : i32
}

// NaN for a row with a value that is not finite.
func.func private @scale_of(%largest: i32, %format: i32) -> f32 {
  %infinity = arith.constant 0x7f800000 : i32
  %nan_bits = arith.constant 0x7fc00000 : i32
  %of_int8 = arith.constant 127.0 : f32
  %of_fp8 = arith.constant 448.0 : f32
  %int8 = call @is_int8(%format) : (i32) -> i1
  %most = arith.select %int8, %of_int8, %of_fp8 : f32
  %value = arith.bitcast %largest : i32 to f32
  %scale = arith.divf %value, %most : f32
  %nan = arith.bitcast %nan_bits : i32 to f32
  %is_finite = arith.cmpi ult, %largest, %infinity : i32
  %own = arith.select %is_finite, %scale, %nan : f32
  return %own : f32
}

// One lane's bytes of a row, whose scale the first lane writes.
func.func private @store_scaled(%move: !ptr, %row: index, %lane: index, %format: i32,
                                %begin: !ptr) {
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %no_byte = arith.constant 0 : i8
  %four = arith.constant 4 : i64
  %largest = call @largest_of(%move, %row, %lane) : (!ptr, index, index) -> i32
  %scale = call @scale_of(%largest, %format) : (i32, i32) -> f32
  %is_first = arith.cmpi eq, %lane, %zero : index
  scf.if %is_first {
    llvm.store %scale, %begin {alignment = 1 : i64} : f32, !ptr
  }
  %has_values = arith.cmpf ogt, %scale, %none : f32
  %width = call @nsg_move.width(%move) : (!ptr) -> index
  %warp = call @NSG_WARP() : () -> index
  scf.for %column = %lane to %width step %warp {
    %value = func.call @value_of(%move, %row, %column) : (!ptr, index, index) -> f32
    %quotient = arith.divf %value, %scale : f32
    %int8 = func.call @is_int8(%format) : (i32) -> i1
    %rounded = scf.if %int8 -> (i8) {
      %own = func.call @to_int8(%quotient) : (f32) -> i8
      scf.yield %own : i8
    } else {
      %own = func.call @to_fp8(%quotient) : (f32) -> i8
      scf.yield %own : i8
    }
    %byte = arith.select %has_values, %rounded, %no_byte : i8
    %column_i64 = arith.index_cast %column : index to i64
    %offset = arith.addi %column_i64, %four : i64
    %at = llvm.getelementptr %begin[%offset] : (!ptr, i64) -> !ptr, i8
    llvm.store %byte, %at {alignment = 1 : i64} : i8, !ptr
  }
  return
}

// One lane's values of a row of a move.
func.func private @move_scaled_row(%move: !ptr, %row: index, %lane: index) {
  %zero = arith.constant 0 : index
  %first_place = call @nsg_move.first_place(%move) : (!ptr) -> i64
  %places = call @nsg_move.target_places(%move) : (!ptr) -> !ptr
  %to = call @place_of(%places, %first_place, %row) : (!ptr, i64, index) -> i64
  %target = call @nsg_move.target(%move) : (!ptr) -> !ptr
  %format = call @nsg_move.target_type(%move) : (!ptr) -> i32
  %bytes = call @bytes_of_value(%format) : (i32) -> i64
  %begin = call @unit_at(%target, %to, %zero, %bytes) : (!ptr, i64, index, i64) -> !ptr
  %has_scale = call @is_scaled(%format) : (i32) -> i1
  scf.if %has_scale {
    func.call @store_scaled(%move, %row, %lane, %format, %begin)
      : (!ptr, index, index, i32, !ptr) -> ()
  } else {
    %width = func.call @nsg_move.width(%move) : (!ptr) -> index
    %warp = func.call @NSG_WARP() : () -> index
    scf.for %column = %lane to %width step %warp {
      %value = func.call @value_of(%move, %row, %column) : (!ptr, index, index) -> f32
      %at = func.call @unit_at(%target, %to, %column, %bytes) : (!ptr, i64, index, i64) -> !ptr
      func.call @store_value(%value, %at, %format) : (f32, !ptr, i32) -> ()
    }
  }
  return
}

// A warp goes through rows of a block's move.
gpu.func @nsg_move_scaled_rows(%moves: !ptr, %num_moves: i32) kernel {
  %block = gpu.block_id x
  %thread = gpu.thread_id x
  %warp = func.call @NSG_WARP() : () -> index
  %threads = func.call @NSG_THREADS() : () -> index
  %size = func.call @NSG_SCALED_ROWS() : () -> index
  %move = func.call @move_of_block(%moves, %num_moves, %block) : (!ptr, i32, index) -> !ptr
  %first_block = func.call @nsg_move.first_block(%move) : (!ptr) -> index
  %block_of_move = arith.subi %block, %first_block : index
  %begin = arith.muli %block_of_move, %size : index
  %rows = func.call @nsg_move.rows(%move) : (!ptr) -> index
  %after = arith.addi %begin, %size : index
  %end = arith.minui %after, %rows : index
  %number = arith.divui %thread, %warp : index
  %lane = arith.remui %thread, %warp : index
  %warps = arith.divui %threads, %warp : index
  %first = arith.addi %begin, %number : index
  scf.for %row = %first to %end step %warps {
    func.call @move_scaled_row(%move, %row, %lane) : (!ptr, index, index) -> ()
  }
  gpu.return
}

}
