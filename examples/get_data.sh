#!/bin/sh
# SPDX-License-Identifier: MIT-0
#
# Fetches Fashion-MNIST (31 MB, MIT licence, Zalando SE) from the address that its README names, and checks every file.
#
#     ./get_data.sh [FOLDER]
#
# FOLDER is $LGELU_DATA/fashion-mnist, or data/fashion-mnist beside this script. Afterwards the programs here take FOLDER by
# --data, or find it by LGELU_DATA. FASHION_MNIST_URL names another place that holds the same four files.
set -eu

folder=${1:-${LGELU_DATA:-$(dirname -- "$0")/data}/fashion-mnist}
url=${FASHION_MNIST_URL:-http://fashion-mnist.s3-website.eu-central-1.amazonaws.com}

stop() { printf 'get_data: %s\n' "$1" >&2; exit 1; }

if command -v curl >/dev/null 2>&1; then fetch() { curl -fsSL --retry 2 -o "$2" -- "$1"; }
elif command -v wget >/dev/null 2>&1; then fetch() { wget -q -O "$2" -- "$1"; }
else stop 'needs curl or wget'; fi

if command -v sha256sum >/dev/null 2>&1; then sum() { sha256sum < "$1"; }
elif command -v shasum >/dev/null 2>&1; then sum() { shasum -a 256 < "$1"; }
elif command -v openssl >/dev/null 2>&1; then sum() { openssl dgst -sha256 -r < "$1"; }
else stop 'needs sha256sum, shasum or openssl'; fi

mkdir -p -- "$folder" || stop "$folder: cannot make the folder"
part=
trap '[ -z "$part" ] || rm -f -- "$part"' EXIT
trap 'exit 1' HUP INT TERM

get() { # name, sha256
    file=$folder/$1
    if [ -f "$file" ]; then
        found=$(sum "$file")
        if [ "${found%% *}" = "$2" ]; then printf '%s: there\n' "$file"; return; fi
        stop "$file: sha256 ${found%% *}, expected $2; remove the file and start again"
    fi
    part=$file.part
    fetch "$url/$1" "$part" || stop "$url/$1: cannot fetch"
    found=$(sum "$part")
    [ "${found%% *}" = "$2" ] || stop "$url/$1: sha256 ${found%% *}, expected $2; nothing was kept"
    mv -- "$part" "$file" || stop "$file: cannot write"
    part=
    printf '%s: fetched, sha256 as expected\n' "$file"
}

get train-images-idx3-ubyte.gz 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
get train-labels-idx1-ubyte.gz a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
get t10k-images-idx3-ubyte.gz 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
get t10k-labels-idx1-ubyte.gz 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
printf 'Fashion-MNIST is complete in %s\n' "$folder"
