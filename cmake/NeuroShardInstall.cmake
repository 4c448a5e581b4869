# What `cmake --install` puts into a prefix: headers, libraries, tools, and the package
# files for find_package(NeuroShard).

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/NeuroShard)
get_property(NEUROSHARD_CORE_COMPONENTS GLOBAL PROPERTY NEUROSHARD_CORE_COMPONENTS)
get_property(NEUROSHARD_COMPILER_COMPONENTS GLOBAL PROPERTY NEUROSHARD_COMPILER_COMPONENTS)

# The source folder and the folder of what TableGen made have the same shape.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/neuroshard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/neuroshard-c DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/neuroshard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  OPTIONAL FILES_MATCHING PATTERN "*.inc" PATTERN "*.td" PATTERN "CMakeFiles" EXCLUDE)

foreach(group Core Compiler)
  string(TOUPPER ${group} group_upper)
  if(NEUROSHARD_${group_upper}_COMPONENTS)
    install(EXPORT NeuroShard${group}Targets NAMESPACE NeuroShard:: DESTINATION ${package_dir})
  endif()
endforeach()

# As lib/CostModel installs them.
set(NEUROSHARD_MODELS_DIR share/neuroshard/models)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/NeuroShardConfig.cmake.in
  ${PROJECT_BINARY_DIR}/NeuroShardConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS NEUROSHARD_MODELS_DIR
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/NeuroShardConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/NeuroShardConfig.cmake
  ${PROJECT_BINARY_DIR}/NeuroShardConfigVersion.cmake
  DESTINATION ${package_dir})
