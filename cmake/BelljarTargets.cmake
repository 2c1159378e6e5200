# The three kinds of target: a folder's library, a folder's unit tests, a fuzz target.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(belljar_flags INTERFACE)
target_include_directories(belljar_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(belljar_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wimplicit-fallthrough>)
target_compile_definitions(belljar_flags INTERFACE _GNU_SOURCE)
target_link_libraries(belljar_flags INTERFACE fmt::fmt-header-only Threads::Threads)
if(NOT BELLJAR_SANITIZE)
  target_compile_options(belljar_flags INTERFACE -fstack-protector-strong)
else()
  # Without the second, undefined behaviour is printed and the test passes.
  target_compile_options(belljar_flags INTERFACE
    -fsanitize=${BELLJAR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(belljar_flags INTERFACE -fsanitize=${BELLJAR_SANITIZE})
endif()

# belljar_library(base fd.cc ... [DEPENDS spec host])
function(belljar_library folder)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  add_library(belljar_${folder} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(belljar_${folder} PUBLIC belljar_flags)
  foreach(dependency ${arg_DEPENDS})
    target_link_libraries(belljar_${folder} PUBLIC belljar_${dependency})
  endforeach()
endfunction()

# belljar_unit_test(base fd_test.cc ...): one test program a folder, labelled "unit"; the target unit_tests builds them all.
add_custom_target(unit_tests)
function(belljar_unit_test folder)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${folder}_test ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${folder}_test PRIVATE belljar_${folder} ${arg_LINK} GTest::gtest_main GTest::gmock)
  add_test(NAME unit_${folder} COMMAND ${folder}_test)
  set_tests_properties(unit_${folder} PROPERTIES LABELS unit TIMEOUT 300)
  add_dependencies(unit_tests ${folder}_test)
endfunction()

# belljar_fuzz_target(policy fuzz_policy.cc LINK belljar_spec): in the fuzz preset only; the target fuzz_targets builds them
# all, and tests/fuzz/corpus/NAME holds seeds, where there are any.
add_custom_target(fuzz_targets)
function(belljar_fuzz_target name)
  if(NOT BELLJAR_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(fuzz_${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(fuzz_${name} PRIVATE ${arg_LINK})
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets fuzz_${name})
endfunction()
