// A program that is not there is an error that lists those that are.

// RUN: neuroshard-opt-raw %s --convert-neuroshard-to-runtime="program=@c" --verify-diagnostics

// expected-error @+1 {{has no device program 'c'; 'program' must be one of @a}}
module {
  neuroshard.device_program @a for [0] {
  }
}
