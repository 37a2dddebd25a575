# SPDX-License-Identifier: MIT-0
# test_torch_package.sh: examples/torch as a package of Python: `make wheel`, the command of its README, and a source distribution that is
# installed without the repository, each in a fresh virtual environment that sees the installed PyTorch, without a network. In each the
# snippets of the README run, in a folder that has nothing else.
CC=${CC:-cc}
export CC
out=$PWD/build/torch_package
. tools/verdict.sh
python=$(python_with torch,pip,setuptools,wheel)
if [ -z "$python" ]; then echo "skip examples/torch as a package: not installed (Debian: python3-torch python3-pip python3-setuptools python3-wheel)"; exit 0; fi
rm -rf "$out"
mkdir -p "$out/away"
unset LGELU_TORCH_LIBRARY LGELU_CONVERT_LIBRARY PYTHONPATH
PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 OMP_NUM_THREADS=1
export PIP_CONFIG_FILE PIP_NO_INDEX PIP_DISABLE_PIP_VERSION_CHECK OMP_NUM_THREADS
readme=$PWD/../examples/torch/README.md
tools=$PWD/tools
log=$out/log
why() { grep -E -m1 'rror' "$log" || tail -n 1 "$log"; }

# environment NAME: makes the virtual environment $out/NAME.
environment() { $python -m venv --system-site-packages --without-pip "$out/$1" > "$log" 2>&1; }

# runs NAME: whether the snippets of the README run in this environment, with the module that is installed there.
runs()
{
    (cd "$out/away" && "$out/$1/bin/python3" -B "$tools/torch_readme.py" "$readme") > "$log" 2>&1 &&
        (cd "$out/away" && "$out/$1/bin/python3" -B -c 'import lgelu, lgelu_refit; print(lgelu.__file__, lgelu_refit.__file__)') > "$out/$1.where" 2>> "$log" &&
        [ "$(tr ' ' '\n' < "$out/$1.where" | grep -c "^$out/$1/lib/")" = 2 ]
}

version=$(sed -n 's/^#define LGELU_VERSION "\(.*\)"$/\1/p' ../lgelu.h)
MAKEFLAGS= make -s -C ../examples wheel BUILD="$out" PYTHON="$python" CFLAGS=-O1 > "$log" 2>&1
verdict $? "make wheel" "$(why)"
wheel=$(ls "$out" | grep '[.]whl$')
case $wheel in lgelu-$version-py3-none-*.whl) true ;; *) false ;; esac
verdict $? "make wheel: one wheel for every Python 3, of the header's version" "$wheel"
files=$($python -c 'import sys, zipfile; print(*sorted(n for n in zipfile.ZipFile(sys.argv[1]).namelist() if "dist-info" not in n))' "$out/$wheel")
[ "$files" = "lgelu.py lgelu_refit.py liblgelu_convert.so liblgelu_torch.so" ]
verdict $? "the wheel has the module and its libraries, and nothing else" "$files"
environment wheel && CC=/nowhere "$out/wheel/bin/python3" -m pip install "$out/$wheel" > "$log" 2>&1 && runs wheel
verdict $? "the wheel is installed without a compiler, and README's snippets run from anywhere" "$(why)"

command=$(grep -m1 '^python3 -m pip install' "$readme" | sed 's/  *#.*//')
environment readme && (cd .. && PATH="$out/readme/bin:$PATH" CFLAGS=-O1 sh -c "$command") > "$log" 2>&1 && runs readme
verdict $? "README's command, $command" "$(why)"
stray=$(ls ../examples/torch | grep -E 'egg|^build$|^sources$|[.]so$' | paste -sd' ')
[ -z "$stray" ]
verdict $? "nothing is left in examples/torch" "$stray"

(cd ../examples/torch && $python -c 'import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])' "$out") > "$log" 2>&1
verdict $? "a source distribution" "$(why)"
environment broken && ! CC=false "$out/broken/bin/python3" -m pip install --no-build-isolation "$out/lgelu-$version.tar.gz" > "$log" 2>&1 &&
    ! ls "$out"/broken/lib/python3*/site-packages | grep -q lgelu
verdict $? "a compiler that fails is an error, and nothing is installed" "$(tail -n 1 "$log")"
environment sdist && CFLAGS=-O0 "$out/sdist/bin/python3" -m pip install --no-build-isolation "$out/lgelu-$version.tar.gz" > "$log" 2>&1 && runs sdist
verdict $? "the source distribution is installed without the repository" "$(why)"
exit $bad
