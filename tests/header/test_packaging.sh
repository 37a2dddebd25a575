# SPDX-License-Identifier: MIT-0
# test_packaging.sh: uses examples/packaging as its users do: builds a small program by CMake (add_subdirectory, FetchContent,
# find_package), pkg-config and Meson (as a wrap), and checks the Conan and vcpkg recipes as far as possible without these tools. All
# versions must agree.
CC=${CC:-cc}
export CC
out=$PWD/build/packaging
root=$(cd .. && pwd)
from=$root/examples/packaging
rm -rf "$out"
mkdir -p "$out"
. tools/verdict.sh
have() { command -v "$1" > /dev/null; }
# quietly NAME COMMAND...: its output in NAME.log
quietly() { log=$out/$1.log; shift; "$@" >> "$log" 2>&1; }
why() { grep -m1 -i -E 'error|not found|undefined' "$log" || tail -n 1 "$log"; }

version=$(sed -n 's/^#define LGELU_VERSION "\(.*\)"$/\1/p' "$root/lgelu.h")
said="lgelu $version: -0.0455003 -0.154269 0.345731 1.9545"
net=", a network of 2 nodes"

# ---- versions: the header's title, macros and HISTORY, and each packaging file that can't read them there ----
title=$(sed -n '1,3s/.*lgelu.h - v\([0-9.]*\) - .*/\1/p' "$root/lgelu.h")
parts=$(sed -n 's/^#define LGELU_VERSION_[MP][A-Z]* \([0-9]*\)$/\1/p' "$root/lgelu.h" | paste -sd.)
history=$(sed -n 's/^   HISTORY  *\([0-9.]*\) .*/\1/p' "$root/lgelu.h")
meson=$(sed -n "s/^project('lgelu'.* version: '\([0-9.]*\)'.*/\1/p" "$from/meson/lgelu/meson.build")
conan=$(sed -n 's/^    version = "\(.*\)"$/\1/p' "$from/conanfile.py")
vcpkg=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$from/vcpkg/lgelu/vcpkg.json")
differ=
for each in "title=$title" "numbers=$parts" "HISTORY=$history" "meson.build=$meson" "Conan=$conan" "vcpkg=$vcpkg"; do
    [ "${each#*=}" = "$version" ] || differ="$differ $each"
done
[ -n "$version" ] && [ -z "$differ" ]
verdict $? "one version everywhere, $version" "LGELU_VERSION is '$version', but$differ"

# ---- CMake ----
if have cmake; then
    printf '%s\n' 'cmake_minimum_required(VERSION 3.14)' 'project(sub C)' "add_subdirectory($from lgelu)" \
        "add_executable(sub $from/consumer/main.c)" 'target_link_libraries(sub PRIVATE lgelu::lgelu)' > "$out/CMakeLists.txt"
    quietly sub cmake -S "$out" -B "$out/sub" -DCMAKE_BUILD_TYPE=Debug && quietly sub cmake --build "$out/sub" &&
        [ "$("$out/sub/sub")" = "$said$net" ]
    verdict $? "CMake, add_subdirectory" "$(why)"
    quietly fetch cmake -S "$from/consumer" -B "$out/fetch" -DCMAKE_BUILD_TYPE=Debug -DLGELU_SOURCE="$root" -DLGELU_TRAINER=OFF &&
        quietly fetch cmake --build "$out/fetch" &&
        [ "$("$out/fetch/consumer")" = "$said" ] && [ "$("$out/fetch/alone")" = "$said" ]
    verdict $? "CMake, FetchContent, without the trainer; the header alone" "$(why)"
    quietly install cmake --install "$out/sub" --prefix "$out/first place"
    # a package that can be moved
    mv "$out/first place" "$out/another place"
    quietly find cmake -S "$from/consumer" -B "$out/find" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$out/another place" &&
        quietly find cmake --build "$out/find" &&
        [ "$("$out/find/consumer")" = "$said$net" ] && [ "$("$out/find/alone")" = "$said" ]
    verdict $? "CMake, find_package of an installed and moved package" "$(why)"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.14)' 'project(old C)' 'find_package(lgelu 99.0 CONFIG REQUIRED)' \
        > "$out/CMakeLists.txt"
    ! quietly old cmake -S "$out" -B "$out/old" -DCMAKE_PREFIX_PATH="$out/another place" &&
        grep -q "lgeluConfig.cmake, version: $version" "$out/old.log"
    verdict $? "CMake, find_package refuses another version" "$(why)"
else echo "skip consumers by CMake: not installed (Debian: cmake)"; fi

# ---- pkg-config, of the package that CMake has installed ----
if have pkg-config && have cmake; then
    pc=$(find "$out/another place" -name lgelu.pc)
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    eval "set -- $(pkg-config --cflags lgelu)"
    quietly pc $CC -c "$@" "$from/consumer/main.c" -o "$out/pc.o"
    eval "set -- $(pkg-config --libs lgelu)"
    quietly pc $CC "$out/pc.o" "$@" -o "$out/pc" && [ "$("$out/pc")" = "$said$net" ] &&
        [ "$(pkg-config --modversion lgelu)" = "$version" ]
    verdict $? "pkg-config" "$(why)"
else echo "skip a consumer by pkg-config: not installed (Debian: pkg-config, cmake)"; fi

# ---- Meson: the wrap and its subproject ----
if have meson && have ninja; then
    project=$out/meson
    mkdir -p "$project/subprojects"
    cp "$from/consumer/main.c" "$from/consumer/meson.build" "$project/"
    cp -r "$from/meson/." "$project/subprojects"
    cp "$root/lgelu.h" "$from/lgelu.c" "$project/subprojects/lgelu"
    quietly meson env -u PKG_CONFIG_PATH meson setup "$project/build" "$project" --buildtype debug &&
        quietly meson ninja -C "$project/build" &&
        [ "$("$project/build/consumer")" = "$said$net" ]
    verdict $? "Meson, a wrap" "$(why)"
    DESTDIR=$out/meson_place quietly meson meson install -C "$project/build" --no-rebuild &&
        found=$(find "$out/meson_place" -name lgelu.pc) &&
        [ -n "$found" ] && grep -q "^Version: $version$" "$found" && grep -q -- '-DLGELU_TRAINER' "$found"
    verdict $? "Meson, installed with its lgelu.pc" "$(why)"
else echo "skip a consumer by Meson: not installed (Debian: meson, ninja-build)"; fi

# ---- each recipe of the README, to the letter ----
# block RECIPE LANGUAGE: prints the code of this language below this heading; without a heading that above the first one
block()
{
    awk -v recipe="$1" -v language="$2" '
        /^## / { on = $0 == "## " recipe; next }
        NR == 1 && recipe == "" { on = 1 }
        on && $0 == "```" language { code = 1; next }
        /^```$/ { code = 0 }
        on && code' "$from/README.md"
}
# recipe HEADING TOOL...: builds its project in an empty folder, by commands that stop at the first error
recipe()
{
    name=$1
    shift
    for tool in "$@"; do
        have "$tool" || { echo "skip the README's recipe, $name: no $tool here"; return; }
    done
    place=$out/recipe
    rm -rf "$place"
    mkdir "$place"
    ln -s "$root" "$place/lgelu"
    block '' c > "$place/main.c"
    block "$name" cmake > "$place/CMakeLists.txt"
    block "$name" meson > "$place/meson.build"
    block "$name" sh > "$place/commands"
    log=$place/log
    [ -s "$place/commands" ] && (cd "$place" && env -u PKG_CONFIG_PATH -u CPATH sh -e commands) > "$log" 2>&1 &&
        [ "$(tail -n 1 "$log")" = 0.841345 ]
    verdict $? "the README's recipe, $name" "$(why)"
}
recipe CMake cmake
recipe 'CMake, installed' cmake
recipe pkg-config cmake pkg-config
recipe Meson meson ninja
[ "$(grep -c '^## ' "$from/README.md")" = 5 ]
verdict $? "the README has these four recipes, and that of Conan and vcpkg" "$(grep -c '^## ' "$from/README.md") headings"

# ---- Conan and vcpkg are not in Debian: their recipes run with stand-ins for the few functions that they call ----
python=
python=$(python_with ast)
if [ -n "$python" ]; then
    mkdir -p "$out/conan/stand_in/conan/tools"
    printf 'class ConanFile: pass\n' > "$out/conan/stand_in/conan/__init__.py"
    : > "$out/conan/stand_in/conan/tools/__init__.py"
    cat > "$out/conan/stand_in/conan/tools/files.py" <<'PYTHON'
import os, shutil
def copy(recipe, pattern, src, dst):
    os.makedirs(dst, exist_ok=True)
    shutil.copy(os.path.join(src, pattern), dst)
PYTHON
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$out/conan/stand_in $python - "$from" "$out/conan" > "$out/conan.log" 2>&1 <<'PYTHON'
import importlib.util, sys
folder, out = sys.argv[1:]
spec = importlib.util.spec_from_file_location("conanfile", folder + "/conanfile.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
recipe = module.Lgelu()
recipe.recipe_folder, recipe.package_folder = folder, out + "/package"
recipe.export_sources_folder = recipe.source_folder = out + "/source"
recipe.export_sources()
recipe.package()
PYTHON
    log=$out/conan.log
    cmp -s "$root/lgelu.h" "$out/conan/package/include/lgelu.h" && cmp -s "$root/LICENSE" "$out/conan/package/licenses/LICENSE"
    verdict $? "Conan's recipe packs header and licence" "$(why)"
else echo "skip Conan's recipe: no python3 here"; fi
if have cmake; then
    cat > "$out/port.cmake" <<END
function(vcpkg_install_copyright)
    cmake_parse_arguments(A "" "" "FILE_LIST" \${ARGN})
    file(INSTALL \${A_FILE_LIST} DESTINATION \${CURRENT_PACKAGES_DIR}/share/lgelu)
endfunction()
set(CURRENT_PACKAGES_DIR "$out/vcpkg")
include("$from/vcpkg/lgelu/portfile.cmake")
END
    quietly vcpkg cmake -P "$out/port.cmake" && cmp -s "$root/lgelu.h" "$out/vcpkg/include/lgelu.h" &&
        cmp -s "$root/LICENSE" "$out/vcpkg/share/lgelu/LICENSE"
    verdict $? "vcpkg's port packs header and licence" "$(why)"
else echo "skip vcpkg's port: not installed (Debian: cmake)"; fi
exit $bad
