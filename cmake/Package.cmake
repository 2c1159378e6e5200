# The manual page, shell completion and AppArmor profile, and `cpack`, which puts all of an installation into a .deb.

add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/belljar.1.gz
  COMMAND ${CMAKE_SOURCE_DIR}/tools/make_man_page $<TARGET_FILE:belljar> ${CMAKE_BINARY_DIR}/belljar.1.gz
  DEPENDS belljar ${CMAKE_SOURCE_DIR}/tools/make_man_page VERBATIM)
add_custom_target(belljar_man_page ALL DEPENDS ${CMAKE_BINARY_DIR}/belljar.1.gz)

install(FILES ${CMAKE_BINARY_DIR}/belljar.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/belljar.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME belljar)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/apparmor DESTINATION ${CMAKE_INSTALL_DATADIR}/belljar)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME belljar)
set(CPACK_PACKAGE_CONTACT "Belljar developers <belljar@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run programs that nobody has read, in a sandbox of their own")
set(CPACK_PACKAGE_DESCRIPTION "Belljar runs a script or a command where it reaches no network, none of the host's files,
processes or secrets, and no more than its share of memory, time and everything else,
and says exactly what happened. No daemon, and no image to fetch.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3, bash-completion")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/postinst ${CMAKE_SOURCE_DIR}/packaging/prerm
  ${CMAKE_SOURCE_DIR}/packaging/postrm)
set(CPACK_STRIP_FILES ON)
include(CPack)
