# SPDX-License-Identifier: MIT-0
# processors.sh: matrix.sh and portability.sh read it. It defines which command compiles for another processor or C library, and what
# runs the programs. $dir is a folder for trial programs. Debian packages: qemu-user, gcc-PROCESSOR-linux-gnu with
# libc6-dev-*-cross for aarch64, arm (gnueabihf), riscv64, s390x and powerpc64; lib32gcc-12-dev, libc6-dev-i386; musl-tools;
# {gcc,g++}-mingw-w64-x86-64, wine64; clang, lld, wasi-libc, libclang-rt-dev-wasm32, nodejs.
beside=/usr/include/$(uname -m)-linux-gnu

# target NAME: sets language, compile, runner, and threads: what programs with threads are compiled with, if there are any
target()
{
    language=c99 runner= threads=-pthread
    case $1 in
    native)       compile=gcc ;;
    clang)        compile=clang ;;
    no-avx)       compile='gcc -static' runner='qemu-x86_64 -cpu Nehalem' ;;
    i386)         compile="gcc -m32 -msse2 -mfpmath=sse -idirafter $beside" ;;
    musl)         compile="musl-gcc -static -idirafter /usr/include -idirafter $beside" ;;
    mingw*)       compile='x86_64-w64-mingw32-gcc -static' runner=$(runs_windows)
                  case $1 in *++) language=c++20 compile='x86_64-w64-mingw32-g++ -static -x c++' ;; esac ;;
    aarch64)      compile='aarch64-linux-gnu-gcc -static' runner=qemu-aarch64 ;;
    aarch64-clang) compile='clang --target=aarch64-linux-gnu -static' runner=qemu-aarch64 ;;
    arm)          compile='arm-linux-gnueabihf-gcc -static' runner=qemu-arm ;;
    riscv64)      compile='riscv64-linux-gnu-gcc -static' runner=qemu-riscv64 ;;
    # under ISO's C gcc computes floats as doubles there
    s390x)        language=gnu99 compile='s390x-linux-gnu-gcc -static' runner=qemu-s390x ;;
    ppc64)        language=gnu99 compile='powerpc64-linux-gnu-gcc -static' runner=qemu-ppc64 ;;
    wasm*)        compile='clang --target=wasm32-wasi -Wl,-z,stack-size=1048576' threads=
                  runner='node --no-warnings tools/wasi.js'
                  case $1 in *-simd128) compile="$compile -msimd128" ;; esac ;;
    *)            echo "FAIL processors.sh: no target '$1'"; exit 2 ;;
    esac
    compile="$compile -std=$language"
}

# able COMMAND...: prints nothing if the command makes programs that the runner runs, and the reason otherwise.
able()
{
    if ! command -v "$1" > /dev/null; then echo "no $1 here"; return; fi
    printf '#include <math.h>\n#include <stdio.h>\nint main(void) { return printf("works\\n") < 0; }\n' > "$dir/probe.c"
    if ! "$@" "$dir/probe.c" -o "$dir/probe.exe" -lm > "$dir/probe.out" 2>&1; then echo "'$*' does not work here"; return; fi
    # Wine ends lines with a carriage return
    if [ "$($runner "$dir/probe.exe" 2> /dev/null | tr -d '\r')" != works ]; then echo "nothing here runs its programs"; fi
}

WINEPREFIX=$PWD/build/matrix/wine WINEDEBUG=-all
export WINEPREFIX WINEDEBUG
runs_windows()
{
    for w in wine64 wine /usr/lib/wine/wine64; do command -v $w && return; done
    echo false
}
# ends the processes that Wine leaves running
unwine() { for w in wineserver /usr/lib/wine/wineserver; do command -v $w > /dev/null && { $w -k 2> /dev/null; return; }; done; }
