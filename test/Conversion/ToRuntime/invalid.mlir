// The program to keep must be there, and be named if there are several.

// RUN: neuroshard-opt-raw %s --convert-neuroshard-to-runtime --split-input-file --verify-diagnostics

// expected-error @+1 {{has no device program: the conversion to the runtime takes partitioned IR}}
module {
}

// -----

// expected-error @+1 {{has several device programs; 'program' must be one of @a @b}}
module {
  neuroshard.device_program @a for [0] {
  }
  neuroshard.device_program @b for [1] {
  }
}
