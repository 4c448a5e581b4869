# Finds LibTorch for neuroshard-train and the operators of torch.distributed: the libraries and
# headers inside a PyTorch wheel.
#
# find_package(Torch) is of no use here: it enables CUDA as a language, looks for a GPU and
# links libraries that training on the CPU does not need.

set(NEUROSHARD_BUILD_TRAINING AUTO CACHE STRING
  "Build neuroshard-train, which needs PyTorch: ON, OFF, or AUTO (when PyTorch is found)")
set_property(CACHE NEUROSHARD_BUILD_TRAINING PROPERTY STRINGS AUTO ON OFF)
set(TORCH_DIR "" CACHE PATH
  "Folder of the Python package torch (with lib/ and include/); default: that of build/venv (a wheel: of the interpreter)")

# Sets NEUROSHARD_TRAINING to whether neuroshard-train is built, and defines the target
# neuroshard_torch if so.
macro(neuroshard_find_torch)
  set(NEUROSHARD_TRAINING FALSE)
  if(NEUROSHARD_BUILD_TRAINING STREQUAL "OFF" OR NOT NEUROSHARD_BUILD_TRAINING)
    message(STATUS "neuroshard-train: not built (NEUROSHARD_BUILD_TRAINING is OFF)")
  else()
    neuroshard_locate_torch(torch_dir)
    if(torch_dir)
      message(STATUS "neuroshard-train: built with PyTorch in ${torch_dir}")
      neuroshard_define_torch(${torch_dir})
      set(NEUROSHARD_TRAINING TRUE)
    elseif(NEUROSHARD_BUILD_TRAINING STREQUAL "AUTO")
      message(STATUS "neuroshard-train: not built, no PyTorch found (./dev demo and ./dev check install it; "
        "TORCH_DIR names another)")
    else()
      message(FATAL_ERROR "NEUROSHARD_BUILD_TRAINING is ON, but there is no PyTorch in TORCH_DIR "
        "('${TORCH_DIR}') nor in build/venv: expected lib/libtorch_cpu.so, lib/libc10.so and "
        "include/torch in the folder of the Python package torch")
    endif()
  endif()
endmacro()

function(neuroshard_locate_torch result)
  if(TORCH_DIR)
    set(candidates ${TORCH_DIR})
  elseif(NEUROSHARD_WHEEL)
    neuroshard_python_package(torch candidates)
  else()
    file(GLOB packages ${PROJECT_SOURCE_DIR}/build/venv/lib/python3.*/site-packages)
    # Configures again once ./dev check has installed PyTorch.
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${packages})
    list(TRANSFORM packages APPEND /torch OUTPUT_VARIABLE candidates)
  endif()
  set(${result} "" PARENT_SCOPE)
  foreach(folder IN LISTS candidates)
    if(EXISTS ${folder}/lib/libtorch_cpu.so AND EXISTS ${folder}/lib/libc10.so
        AND EXISTS ${folder}/include/torch/csrc/api/include/torch/torch.h)
      set(${result} ${folder} PARENT_SCOPE)
      break()
    endif()
  endforeach()
endfunction()

function(neuroshard_define_torch folder)
  add_library(neuroshard_torch INTERFACE)
  target_include_directories(neuroshard_torch SYSTEM INTERFACE
    ${folder}/include ${folder}/include/torch/csrc/api/include)
  target_link_libraries(neuroshard_torch INTERFACE
    ${folder}/lib/libtorch_cpu.so ${folder}/lib/libc10.so)
  neuroshard_add_precompiled_headers(torch <torch/torch.h> <torch/library.h>)
  neuroshard_link_headers(torch neuroshard_torch)
  # CMake puts folders of linked libraries into the build tree's rpath by itself, and with
  # CMAKE_INSTALL_RPATH_USE_LINK_PATH into the installed one's.
endfunction()

# neuroshard_torch_target(NAME [ONE_UNIT])
# A target of which most files include LibTorch. Not built in unity, where names of ours and of
# torch may meet; with ONE_UNIT all files are one unit instead, which takes less than to precompile
# torch's headers for it.
function(neuroshard_torch_target name)
  cmake_parse_arguments(ARG "ONE_UNIT" "" "" ${ARGN})
  target_link_libraries(${name} PRIVATE neuroshard_torch neuroshard_options)
  if(ARG_ONE_UNIT AND CMAKE_UNITY_BUILD)
    set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
  else()
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
    neuroshard_precompile(${name} torch)
  endif()
endfunction()
