# What `cmake --install` puts in place: the command, the library with its header, and the pages.
#
# The library is one archive, libbelljar.a, merged from the folders' archives, so that a user links one file and needs no
# package but Belljar's own. find_package(Belljar) gives the target belljar::belljar; pkg-config knows it as belljar.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The static libraries of this project that `target` is linked from, itself included.
function(belljar_archives_of target found)
  set(archives ${${found}})
  if(NOT target IN_LIST archives)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND archives ${target})
    endif()
    get_target_property(linked ${target} INTERFACE_LINK_LIBRARIES)
    foreach(item ${linked})
      string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" item "${item}")
      if(item MATCHES "^belljar_" AND TARGET ${item})
        belljar_archives_of(${item} archives)
      endif()
    endforeach()
  endif()
  set(${found} ${archives} PARENT_SCOPE)
endfunction()

install(TARGETS belljar RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS belljar-broker belljar-egress belljar-ukernel RUNTIME DESTINATION libexec/belljar)
if(TARGET belljar-wasm)
  install(TARGETS belljar-wasm RUNTIME DESTINATION libexec/belljar)
endif()
# With all that the pages link to.
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md ${CMAKE_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/library DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES ${CMAKE_SOURCE_DIR}/src/files/protected.def DESTINATION ${CMAKE_INSTALL_DOCDIR}/src/files)

belljar_archives_of(belljar_supervisor archives)
set(script "CREATE ${CMAKE_BINARY_DIR}/libbelljar.a\n")
foreach(archive ${archives})
  string(APPEND script "ADDLIB $<TARGET_FILE:${archive}>\n")
endforeach()
# International host names: other projects need no packages for them either.
foreach(name idn2 unistring)
  find_library(BELLJAR_ARCHIVE_${name} lib${name}.a REQUIRED)
  string(APPEND script "ADDLIB ${BELLJAR_ARCHIVE_${name}}\n")
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/merge.mri CONTENT "${script}SAVE\nEND\n")
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/libbelljar.a
  COMMAND ${CMAKE_AR} -M < ${CMAKE_BINARY_DIR}/merge.mri
  DEPENDS ${archives} ${CMAKE_BINARY_DIR}/merge.mri
  COMMENT "Merging libbelljar.a" VERBATIM)
add_custom_target(belljar_archive ALL DEPENDS ${CMAKE_BINARY_DIR}/libbelljar.a)

install(FILES ${CMAKE_BINARY_DIR}/libbelljar.a DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The public header and what it includes, below include/belljar: under no other name, as a user's project may have a
# base/ or spec/ of its own.
foreach(header belljar/belljar.h base/result.h spec/egress_rule.h spec/errors.def spec/errors.h spec/host_name.h spec/ip_address.h
    spec/limits.def spec/limits.h spec/outcome.h spec/sandbox_spec.h spec/secret_rule.h)
  string(REGEX REPLACE "^belljar/" "" place ${header})
  set(source ${CMAKE_SOURCE_DIR}/src/${header})
  if(NOT EXISTS ${source})
    set(source ${CMAKE_SOURCE_DIR}/include/${header})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(REGEX REPLACE "#include \"(base|spec)/" "#include \"belljar/\\1/" text "${text}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/installed/belljar/${place} CONTENT "${text}" @ONLY)
  get_filename_component(folder belljar/${place} DIRECTORY)
  install(FILES ${CMAKE_BINARY_DIR}/installed/belljar/${place} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/BelljarConfig.cmake.in ${CMAKE_BINARY_DIR}/BelljarConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Belljar
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/BelljarConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/BelljarConfig.cmake ${CMAKE_BINARY_DIR}/BelljarConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Belljar)
file(RELATIVE_PATH BELLJAR_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/belljar.pc.in ${CMAKE_BINARY_DIR}/belljar.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/belljar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
