# SPDX-License-Identifier: MIT-0
# vcpkg install lgelu --overlay-ports=examples/packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)                # a header alone
file(INSTALL "${SOURCE_PATH}/lgelu.h" DESTINATION "${CURRENT_PACKAGES_DIR}/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
