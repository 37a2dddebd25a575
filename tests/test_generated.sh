# SPDX-License-Identifier: MIT-0
# test_generated.sh: what scripts have made is still what they make.
failed=0
judge()
{
    name=$1
    shift
    if said=$("$@" 2>&1); then echo "ok $name"; else echo "FAIL $name: $(echo "$said" | tail -n 1)"; failed=1; fi
}
if ! python3 -c 'import mpmath' 2> /dev/null; then
    echo "skip the reference values are what reference.py prints: no python3 with mpmath here"
    echo "skip the kernels' tables are what coefficients.py prints: no python3 with mpmath here"
    exit 0
fi
judge 'the reference values are what reference.py prints' python3 reference.py --check reference_values.h
judge "the kernels' tables are what coefficients.py prints" python3 coefficients.py --check ../lgelu.h
sed 's/0x1\.[0-9a-f]*p-2/0x1.0000000000001p-2/' reference_values.h > build/reference_values.wrong
if python3 reference.py --check build/reference_values.wrong > /dev/null; then echo "FAIL control: a changed value is noticed: it is not"; failed=1; else echo "ok control: a changed value is noticed"; fi
exit $failed
