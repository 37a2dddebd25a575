# SPDX-License-Identifier: MIT-0
# test_bare.sh: tests that look for further programs pass, or skip cases by name, where there is nothing but what README installs: gcc,
# make, libstb-dev and Debian's essential packages. They run in a copy of the repository, with a PATH that has only these programs.
# Here they are those that take seconds; .ci/run runs the slower ones, too, in a Debian that has no other package.
. tools/verdict.sh
out=$PWD/build/bare
rm -rf $out
mkdir -p $out/bin $out/tree || exit 1

# what these packages install and a test or a Makefile may use; a program that is missing here is reported by the test that uses it
for program in sh bash dash awk mawk grep egrep fgrep sed find xargs cmp diff tar gzip gunzip zcat perl hostname \
    basename cat chmod cp cut date dd df dirname du echo env expr false fold head id join ln ls mkdir mkfifo mktemp mv nl nproc od paste \
    printf pwd readlink realpath rm rmdir seq shuf sleep sort split stat stdbuf tac tail tee test timeout touch tr true truncate tty \
    uname uniq wc which yes base64 cksum md5sum sha256sum comm nice nohup sync setarch \
    cc gcc c99 cpp as ld ld.bfd ar nm objdump objcopy ranlib readelf size strings strip make getconf ldd iconv localedef; do
    found=$(command -v $program) && ln -s "$(readlink -f "$found")" $out/bin/$program
done
bare() { env -i PATH=$out/bin HOME=$out LGELU_ISA="$LGELU_ISA" "$@"; }
[ -n "$LGELU_ISA" ] || bare() { env -i PATH=$out/bin HOME=$out "$@"; }

others=$(for program in python3 node clang g++ mpicc chromium clang-format git; do bare sh -c "command -v $program"; done)
verdict $([ -z "$others" ]; echo $?) "control: other programs are not found" "$others"
echo 'int main(void) { return 0; }' > $out/main.c
why=$(bare cc -O1 $out/main.c -o $out/main 2>&1 && $out/main)
verdict $? "control: the compiler works with these programs alone" "$why"

(cd .. && find . -name build -prune -o -name .git -prune -o -type f -print | tar -cf - -T -) | tar -xf - -C $out/tree
# the object that all tests link, unless another compiler made it
mkdir -p $out/tree/tests/build
case ${CC:-cc} in cc|gcc) [ ! -f build/lgelu.o ] || cp build/lgelu.o $out/tree/tests/build && touch $out/tree/tests/build/lgelu.o ;; esac

# a test that uses what only Python writes, as the control
printf 'python3 -c 1 2> /dev/null && echo 1 > build/planted\n[ -s build/planted ] && echo "ok planted" || echo "FAIL planted: no file"\n' \
    > $out/tree/tests/repository/test_planted.sh
bare make -s -C $out/tree/tests -j1 test_planted > $out/planted 2>&1
verdict $([ $? != 0 ] && grep -q 'FAIL test_planted: planted' $out/planted; echo $?) "control: a test that requires Python is found" "$(cat $out/planted)"
rm $out/tree/tests/repository/test_planted.sh

names=$(sh tools/bare.sh quick)
verdict $([ "$(echo "$names" | wc -l)" -ge 15 ]; echo $?) "tests that look for further programs are known" "$names"
bare make -s -C $out/tree/tests -k -j1 $names > $out/log 2>&1
for name in $names; do
    status=$(sed -n 's/^exit //p' $out/tree/tests/build/$name.log 2>&1)
    found=$(grep -m 1 -e '^FAIL' $out/tree/tests/build/$name.log || tail -n 2 $out/tree/tests/build/$name.log | head -n 1)
    verdict $([ "$status" = 0 ] && ! grep -q '^FAIL' $out/tree/tests/build/$name.log; echo $?) "$name, with what README installs" "$found"
done
rm -rf $out/tree
exit $bad
