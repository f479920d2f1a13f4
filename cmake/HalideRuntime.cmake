# Halide's own runtime as an object file inside the library of the CPU runtime: the CPU loader links kernels against it.
add_executable(tilewright_standalone_runtime ${PROJECT_SOURCE_DIR}/lowering/cpu/standalone_runtime/main.cpp)
tilewright_precompile(tilewright_standalone_runtime)
target_link_libraries(tilewright_standalone_runtime PRIVATE Halide::Halide)

set(TILEWRIGHT_HALIDE_RUNTIME ${PROJECT_BINARY_DIR}/halide_runtime.o)
add_custom_command(OUTPUT ${TILEWRIGHT_HALIDE_RUNTIME}
  COMMAND tilewright_standalone_runtime ${TILEWRIGHT_HALIDE_RUNTIME}
  DEPENDS tilewright_standalone_runtime VERBATIM)

# The object as bytes, between two symbols.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/halide_runtime_image.cpp @ONLY CONTENT [[
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".global tilewright_halide_runtime_begin\n"
        "tilewright_halide_runtime_begin:\n"
        ".incbin \"@TILEWRIGHT_HALIDE_RUNTIME@\"\n"
        ".global tilewright_halide_runtime_end\n"
        "tilewright_halide_runtime_end:\n"
        ".previous\n");
]])
set_source_files_properties(${PROJECT_BINARY_DIR}/halide_runtime_image.cpp PROPERTIES OBJECT_DEPENDS ${TILEWRIGHT_HALIDE_RUNTIME})
add_library(tilewright_halide_runtime_image OBJECT ${PROJECT_BINARY_DIR}/halide_runtime_image.cpp ${TILEWRIGHT_HALIDE_RUNTIME})
set_source_files_properties(${TILEWRIGHT_HALIDE_RUNTIME} PROPERTIES GENERATED TRUE HEADER_FILE_ONLY TRUE)
target_sources(tw_runtime_cpu PRIVATE $<TARGET_OBJECTS:tilewright_halide_runtime_image>)
