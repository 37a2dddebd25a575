# SPDX-License-Identifier: MIT-0
# The committed tables of the rooms [3] and [K] are the ones that coefficients.py makes.
name='tables as coefficients.py makes them'
. tools/verdict.sh
python=$(python_with mpmath)
if [ -z "$python" ]; then echo "skip $name: $no_mpmath"; exit 0; fi
why=$($python tools/coefficients.py --check ../lgelu.h 2>&1)
verdict $? "$name" "$why"
exit $bad
