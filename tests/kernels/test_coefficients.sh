# SPDX-License-Identifier: MIT-0
# test_coefficients.sh: the tables in the sections [3] and [K] of the header are those that coefficients.py computes.
name='tables as coefficients.py makes them'
. tools/verdict.sh
python=$(python_with mpmath)
if [ -z "$python" ]; then echo "skip $name: $no_mpmath"; exit 0; fi
why=$($python tools/coefficients.py --check ../lgelu.h 2>&1)
verdict $? "$name" "$why"
exit $bad
