# SPDX-License-Identifier: MIT-0
# The committed tables of the rooms [3] and [K] are the ones that coefficients.py makes.
name='tables as coefficients.py makes them'
for python in python3 /usr/bin/python3; do
    $python -c 'import mpmath' 2>/dev/null || continue
    if why=$($python tools/coefficients.py --check ../lgelu.h 2>&1); then echo "ok $name"; exit 0; fi
    echo "FAIL $name: $why"
    exit 1
done
echo "skip $name: python3-mpmath is not installed"
