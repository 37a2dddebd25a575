# SPDX-License-Identifier: MIT-0
# test_round_trip.sh: two networks with GELU go from PyTorch to an emulated microcontroller: trained and exported there, converted to
# ReLU without training or labels and written in 8 bits as a C file (reluize --c8), compiled for a Cortex-M4 without a float unit, and run
# there by qemu on all test images, which nothing before has seen: Fashion-MNIST of LGELU_DATA, else the images of this repository. The
# chip has the outputs of this machine, and at most 0.2 points less accuracy than the ReLU network in f32. The lines that begin with #
# are a table of the accuracies.
CC=${CC:-cc}
out=build/round_trip
mkdir -p $out
. tools/verdict.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
python=$(python_with torch,numpy)
if [ -z "$python" ]; then echo "skip PyTorch to a microcontroller: PyTorch is $no_torch"; exit 0; fi
chip_gcc='arm-none-eabi-gcc'
emulator='qemu-system-arm'
for tool in $chip_gcc $emulator; do
    command -v $tool > /dev/null || { echo "skip PyTorch to a microcontroller: $tool is not installed"; exit 0; }
done
data=../examples/pictures
[ -z "${LGELU_DATA-}" ] || [ ! -d "$LGELU_DATA/fashion-mnist" ] || data=$LGELU_DATA/fashion-mnist
library="${IMPLEMENTATION:-tools/lgelu.c} -lm"
$CC -std=c99 -O1 $WARNINGS tools/round_trip_data.c ../examples/common/data.c -o $out/data -lm || exit 1
$CC -std=c99 -O2 $RELUIZE $library -o $out/reluize || exit 1
$out/data $data $out || exit 1
$python tools/round_trip.py $out > $out/list
verdict $? "PyTorch trains and exports two networks" || exit 1
echo "# $(basename $data)	PyTorch, GELU	ReLU, f32	8 bits on a Cortex-M4"

# score KEY: a score of the report
score() { sed -n "s/.*\"$1\": {\"score\": \([0-9.]*\).*/\1/p" $out/$name.json; }
# less A B MOST: whether A is at most MOST below B
less() { awk "BEGIN { exit !($2 - $1 <= $3) }"; }
while read -r name torch; do
    $out/reluize $out/$name.onnx --data $data --mean 0 --std 1 -o $out/$name.relu.onnx --c8 $out/$name.c --report $out/$name.json \
        > $out/$name.log 2>&1
    verdict $? "$name: reluize writes a ReLU network and its C file" "$(tail -n 1 $out/$name.log)" || continue
    before=$(score before)
    less $before $torch 0.05 && less $torch $before 0.05
    verdict $? "$name: the network that was read has PyTorch's accuracy" "$before, not $torch"
    relu=$(score $(sed -n 's/.*"written": "\([a-z]*\)".*/\1/p' $out/$name.json))

    cat > $out/chip_net.h <<C
#include "$name.c"
#define CHIP(what) ${name}_##what
#define CHIP_RUN chip_run
#define CHIP_SCORE "test.bin"
/* the bytes of the network's grid, then the network */
static void chip_run(int32_t *y, const float *x)
{
    static uint8_t q[CHIP(inputs)];
    for (size_t k = 0; k < CHIP(inputs); k++) {
        const float v = x[k] / CHIP(X_SCALE) + CHIP(X_ZERO) + 0.5f;
        q[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
    $name(y, q);
}
C
    $CC -std=gnu99 -O2 -DCHIP_HOSTED -I$out tools/chip.c -o $out/$name.hosted && (cd $out && ./$name.hosted) > $out/$name.here
    verdict $? "$name: the C file runs on this machine"
    $chip_gcc -mthumb -specs=nosys.specs -mcpu=cortex-m4 -mfloat-abi=soft -std=gnu99 -O2 -ffunction-sections -fdata-sections -I$out tools/chip.c \
        -nostartfiles -Wl,--gc-sections -Wl,--defsym=FLASH=0,--defsym=FLASH_SIZE=1M,--defsym=RAM=0x20000000,--defsym=RAM_SIZE=256K \
        -T tools/chip.ld -o $out/$name.elf > $out/$name.gcc 2>&1
    verdict $? "$name: the C file compiles for a Cortex-M4" "$(grep -m 1 error $out/$name.gcc)" || continue
    (cd $out && timeout 600 $emulator -semihosting-config enable=on,target=native -M mps2-an386 -nographic -kernel $name.elf \
        < /dev/null) > $out/$name.chip 2>&1
    cmp -s $out/$name.here $out/$name.chip
    verdict $? "$name: the Cortex-M4 has the outputs of this machine on all test images" "$(tail -n 1 $out/$name.chip), not $(cat $out/$name.here)"
    chip=$(awk '{ printf "%.4f", 100 * $1 / $3 }' $out/$name.chip)
    less $chip $relu 0.2
    verdict $? "$name: at most 0.2 points under the ReLU network in f32" "$chip, not $relu"
    [ $(wc -c < $out/test.bin) = $(awk '{ print $3 * 785 }' $out/$name.chip) ]
    verdict $? "$name: all test images were read" "$(cat $out/$name.chip)"
    echo "# $name	$torch	$relu	$chip"
done < $out/list
exit $bad
