# The package that other projects find: the target Tilewright::tilewright, here and from `cmake --install`.
include(CMakePackageConfigHelpers)

add_library(tilewright_library INTERFACE)
target_link_libraries(tilewright_library INTERFACE tw_api)
target_compile_features(tilewright_library INTERFACE cxx_std_20)
set_target_properties(tilewright_library PROPERTIES EXPORT_NAME tilewright)
add_library(Tilewright::tilewright ALIAS tilewright_library)

function(tilewright_install_package)
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/Tilewright)
  get_property(rooms GLOBAL PROPERTY TILEWRIGHT_ROOMS)
  install(TARGETS tilewright_library tilewright_llvm ${rooms} EXPORT TilewrightTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/tilewright)
  install(EXPORT TilewrightTargets NAMESPACE Tilewright:: DESTINATION ${folder})
  install(DIRECTORY dsl runtime lowering autotune DESTINATION ${TILEWRIGHT_HEADERS} FILES_MATCHING PATTERN "*.h" PATTERN "device" EXCLUDE)
  install(DIRECTORY apps/api DESTINATION ${TILEWRIGHT_HEADERS}/apps FILES_MATCHING PATTERN "*.h")
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TilewrightConfig.cmake.in ${PROJECT_BINARY_DIR}/TilewrightConfig.cmake INSTALL_DESTINATION ${folder})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/TilewrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/TilewrightConfig.cmake ${PROJECT_BINARY_DIR}/TilewrightConfigVersion.cmake DESTINATION ${folder})
endfunction()

if(PROJECT_IS_TOP_LEVEL)
  tilewright_install_package()
endif()
