# SPDX-License-Identifier: MIT-0
# test_reference.sh: the committed values of the yardstick's test are the ones that reference.py makes.
name='reference values as reference.py makes them'
for python in python3 /usr/bin/python3; do
    $python -c 'import mpmath' 2> /dev/null || continue
    if why=$($python tools/reference.py --check tools/reference_values.h 2>&1); then echo "ok $name"; else echo "FAIL $name: $why"; exit 1; fi
    sed 's/0x1\.[0-9a-f]*p-2/0x1.0000000000001p-2/' tools/reference_values.h > build/reference_values.wrong
    if $python tools/reference.py --check build/reference_values.wrong > /dev/null; then echo "FAIL control: a changed value is noticed: it is not"; exit 1; fi
    echo "ok control: a changed value is noticed"
    exit 0
done
echo "skip $name: python3-mpmath is not installed"
