// What cannot be emulated is named.

// RUN: neuroshard-opt %s --split-input-file --verify-diagnostics --neuroshard-emulate-gpu

// expected-error @below {{must have exactly one gpu.module to emulate, got: 0}}
module {
}

// -----

// expected-error @below {{must have exactly one gpu.module to emulate, got: 2}}
module {
  gpu.module @a {
  }
  gpu.module @b {
  }
}

// -----

func.func private @f()
gpu.module @kernels {
  // expected-error @below {{'gpu.func' op is also a symbol outside the gpu.module}}
  gpu.func @f() kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op has workgroup or private buffers, which have no emulation}}
  gpu.func @f() workgroup(%w: memref<32xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'func.func' op has an argument that is no bare pointer: a memref must have a static shape and layout and offset 0, got: 'memref<?xf32>'}}
  gpu.func @f(%x: memref<?xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @f(%p: !llvm.ptr) kernel {
    // expected-error @below {{'llvm.addrspacecast' op uses shared memory, which has no emulation}}
    %q = llvm.addrspacecast %p : !llvm.ptr to !llvm.ptr<3>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @f(%v: f32) kernel {
    // expected-error @below {{'gpu.subgroup_reduce' op has no emulation on the CPU}}
    %s = gpu.subgroup_reduce add %v : (f32) -> f32
    gpu.return
  }
}

// -----

// A warp op that distribution has left over.
gpu.module @kernels {
  gpu.func @f(%lane: index) kernel {
    // expected-error @below {{'gpu.warp_execute_on_lane_0' op has no emulation on the CPU}}
    gpu.warp_execute_on_lane_0(%lane)[32] {
      gpu.yield
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @f() kernel {
    // expected-error @below {{'llvm.inline_asm' op has no emulation on the CPU}}
    llvm.inline_asm has_side_effects "membar.gl;", "" : () -> ()
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @f(%x: f32) kernel {
    // expected-error @below {{'llvm.call_intrinsic' op has no emulation on the CPU}}
    %r = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%x) : (f32) -> f32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @f(%v: f64, %n: i32) kernel {
    // expected-error @below {{'gpu.shuffle' op must shuffle values of 32 bits to be emulated}}
    %a, %valid = gpu.shuffle xor %v, %n, %n : f64
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @f(%n: i32) kernel {
    // expected-error @below {{'nvvm.barrier' op has operands: only the barrier of all threads of a block has an emulation}}
    nvvm.barrier id = %n
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'func.func' op has a parameter that a launch cannot copy: 'vector<4xf32>'}}
  gpu.func @f(%values: vector<4xf32>) kernel {
    gpu.return
  }
}
