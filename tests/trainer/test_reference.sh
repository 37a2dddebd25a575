# SPDX-License-Identifier: MIT-0
# test_reference.sh: the values in the yardstick's test are those that reference.py computes, and the checkpoint of another program
# is what saved_state.py writes.
name='reference values as reference.py makes them'
. tools/verdict.sh
saved='a checkpoint as saved_state.py writes it'
if command -v python3 > /dev/null; then
    python3 tools/saved_state.py > build/saved_state.h
    verdict $(cmp -s build/saved_state.h tools/saved_state.h; echo $?) "$saved" "tools/saved_state.h has other bytes"
else
    echo "skip $saved: no python3 here"
fi
python=$(python_with mpmath)
if [ -z "$python" ]; then echo "skip $name: $no_mpmath"; exit 0; fi
why=$($python tools/reference.py --check tools/reference_values.h 2>&1)
verdict $? "$name" "$why"
sed 's/0x1\.[0-9a-f]*p-2/0x1.0000000000001p-2/' tools/reference_values.h > build/reference_values.wrong
verdict $(! $python tools/reference.py --check build/reference_values.wrong > /dev/null; echo $?) "control: a changed value is noticed" "it is not"
exit $bad
