# SPDX-License-Identifier: MIT-0
# test_chips.sh: runs C files of networks (onnx_c.h) on emulated microcontrollers without an operating system: Cortex-M0, M4 and M7
# (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm) and 32-bit RISC-V (gcc-riscv64-unknown-elf,
# picolibc-riscv64-unknown-elf, qemu-system-misc). On this machine floats have the bits of the evaluator, and integers are at most a
# step from the quantized ONNX file; the hash of all outputs on a chip must be that of this machine. A file of integers neither computes
# a float nor calls a function that does. The lines that begin with # are a table of flash, RAM (values, without the stack), and the
# instructions of one inference, to about 100.
CC=${CC:-cc}
out=build/chips
mkdir -p $out
. tools/verdict.sh
library="${IMPLEMENTATION:-tools/lgelu.c} -lm"
reluize=../examples/reluize
$CC -std=c99 -O1 $WARNINGS tools/chip_nets.c \
    $(built ../examples/network/onnx_out.c ../examples/common/data.c $reluize/onnx/onnx_graph.c $reluize/ops/*.c $reluize/passes/*.c) \
    $library -o $out/chip_nets || exit 1
$out/chip_nets $out > $out/names
verdict $? "networks become C files for chips" || exit 1
rm -f $out/list
while IFS='	' read -r name kind; do
    cp $out/$name.h $out/chip_net.h
    said=$($CC -std=gnu99 -O2 -DCHIP_HOSTED -I$out tools/chip.c -o $out/$name.hosted -lm && $out/$name.hosted)
    echo "$said" | awk -v most=$([ $kind = floats ]; echo $?) '{ exit !(NR == 1 && $1 == "hash" && $4 <= most) }'
    verdict $? "$name on this machine has what the evaluator computes, in $kind" "$said"
    echo "$name	$(echo "$said" | cut -d ' ' -f 2)	$kind" >> $out/list
done < $out/names

# chip NAME COMPILER EMULATOR FLASH FLASH_SIZE RAM RAM_SIZE FLAGS EMULATED
chip() {
    for tool in $2 ${3%% *}; do
        command -v $tool > /dev/null || { echo "skip the networks on $1: $tool is not installed"; return; }
    done
    while IFS='	' read -r name hash kind; do
        cp $out/$name.h $out/chip_net.h
        program=$out/$name-$(echo "$1" | tr ' ' -)
        if ! $2 $8 -std=gnu99 -O2 -ffunction-sections -fdata-sections -I$out tools/chip.c -nostartfiles -Wl,--gc-sections \
            -Wl,--defsym=FLASH=$4,--defsym=FLASH_SIZE=$5,--defsym=RAM=$6,--defsym=RAM_SIZE=$7 -T tools/chip.ld -o $program.elf \
            > $program.log 2>&1; then
            if grep -q 'overflowed' $program.log; then echo "# $1 $name: does not fit: $(grep -o 'overflowed by.*' $program.log | head -n 1)"
                case $name in *_float) ;; *) verdict 1 "$name on $1" "does not fit" ;; esac
            else verdict 1 "$name on $1" "$(grep -m 1 error $program.log)"; fi
            continue
        fi
        said=$(timeout 120 $3 -nographic -icount shift=0 -kernel $program.elf 2>&1 < /dev/null)
        [ "${said%% instructions*}" = "hash $hash" ]
        verdict $? "$name on $1 has the outputs of this machine" "$said, not $hash"
        floats=$(${2%gcc}nm $program.elf | grep -oE '__aeabi_(c?[fd]|.*2[fd]).*|__[a-z]*[sd]f[0-9a-z]*$')
        [ $kind = floats ] || [ -z "$floats" ]
        verdict $? "$name on $1 has $kind, and calls no other" "$floats"
        size=$(${2%gcc}size $program.elf | awk 'NR == 2 { print $1 + $2, $3 - 2048 }')
        echo "# $1 $name: flash ${size% *}, RAM ${size#* }, instructions ${said##* }"
    done < $out/list
}
arm='-mthumb -specs=nosys.specs'
arm_emulator='qemu-system-arm -semihosting-config enable=on,target=native -M'
chip 'Cortex-M0' arm-none-eabi-gcc "$arm_emulator microbit" 0 256K 0x20000000 16K "$arm -mcpu=cortex-m0 -DCHIP_NRF51"
chip 'Cortex-M4' arm-none-eabi-gcc "$arm_emulator mps2-an386" 0 1M 0x20000000 256K "$arm -mcpu=cortex-m4 -mfloat-abi=soft"
chip 'Cortex-M4 with a float unit' arm-none-eabi-gcc "$arm_emulator mps2-an386" 0 1M 0x20000000 256K \
    "$arm -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"
chip 'Cortex-M7' arm-none-eabi-gcc "$arm_emulator mps2-an500" 0 1M 0x20000000 256K \
    "$arm -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"
chip 'RISC-V 32' riscv64-unknown-elf-gcc 'qemu-system-riscv32 -M virt -bios none' 0x80000000 1M 0x80100000 256K \
    '--specs=picolibc.specs -march=rv32imac -mabi=ilp32 -mcmodel=medany'
exit $bad
