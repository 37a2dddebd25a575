#!/bin/sh
# SPDX-License-Identifier: MIT-0
# c.sh PEER FILE.onnx...: networks of floats as C files of onnx_c beside those of PEER, a program that writes a C file with a function
# `entry`, inputs first, to its standard output: onnx2c, https://github.com/kraiskil/onnx2c, is one. Prints a row for each file: the time
# of an inference on this machine (-O3 -march=native, one thread), the bytes of RAM (without the stack), and for networks of one input and
# one output the instructions on an emulated Cortex-M4 with a float unit (-O2; arm-none-eabi-gcc, qemu-system-arm): ours, the peer's, and
# ours / the peer's.
peer=$1
shift
out=build/c
chip=../tests/tools
mkdir -p $out
# count NAME INCLUDED RUN: instructions of one inference
count() {
    printf '#include "%s"\n#define CHIP(what) chip_##what\nenum { chip_outputs = %s, chip_inputs = %s, CHIP_IMAGES = 1 };\n' $2 $outputs $inputs > $out/chip_net.h
    printf '#define CHIP_OUTPUT float\n#define CHIP_FLOAT\n#define CHIP_SCALE 0.01f\n#define CHIP_ZERO 128\n#define CHIP_RUN(y, x) %s\n' "$3" >> $out/chip_net.h
    printf 'static const uint8_t image[1][chip_inputs] = { { 130, 100, 200, 7, 3, 99, 180 } };\n' >> $out/chip_net.h
    arm-none-eabi-gcc -w -mthumb -specs=nosys.specs -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -std=gnu99 -O2 -ffunction-sections \
        -fdata-sections -I$out $chip/chip.c -nostartfiles -Wl,--gc-sections -Wl,--defsym=FLASH=0,--defsym=FLASH_SIZE=4M \
        -Wl,--defsym=RAM=0x20000000,--defsym=RAM_SIZE=256K -T $chip/chip.ld -lm -o $out/$1.elf 2> $out/$1.log || return
    timeout 300 qemu-system-arm -semihosting-config enable=on,target=native -M mps2-an386 -nographic -icount shift=0 \
        -kernel $out/$1.elf 2>&1 < /dev/null | sed -n 's/.*instructions //p'
}
ram() { gcc -O3 -march=native -w -c $1 -o $out/ram.o && size $out/ram.o | awk 'NR == 2 { print $2 + $3 }'; }
printf '%-28s %28s %26s %36s\n' network 'microseconds, ours, peer' 'RAM, ours, peer' 'instructions on M4, ours, peer'
for file; do
    name=net_$(basename "$file" .onnx | tr -c 'A-Za-z0-9\n' '_')
    ../examples/build/onnx_c "$file" -o $out/$name.c --header $out/$name.h > /dev/null || continue
    "$peer" "$file" > $out/peer.c 2> $out/peer.log || { echo "$name: the peer refuses it: $(tail -n 1 $out/peer.log)"; continue; }
    gcc -O3 -march=native -w -shared -fPIC $out/$name.c -lm -o $out/ours.so && gcc -O3 -march=native -w -shared -fPIC $out/peer.c -lm -o $out/peer.so || continue
    outputs=$(sed -n 's/.*_outputs\(_[0-9]*\)* = \([0-9]*\),/\2/p' $out/$name.h) inputs=$(sed -n 's/.*_inputs\(_[0-9]*\)* = \([0-9]*\),/\2/p' $out/$name.h)
    many=$(echo $outputs $inputs | wc -w)
    time=$(build/c_peer ./$out/ours.so $name ./$out/peer.so entry $(echo $outputs | wc -w) $(echo $inputs | wc -w) $outputs $inputs)
    a=$(ram $out/$name.c) b=$(ram $out/peer.c)
    if [ $many = 2 ] && command -v arm-none-eabi-gcc > /dev/null && command -v qemu-system-arm > /dev/null; then
        m=$(count ours $name.c "$name(y, x)") n=$(count peer peer.c 'entry((const void *)(x), (void *)(y))')
    else m= n=; fi
    echo "$name $time $a $b $m $n" | awk '{ printf "%-28s %9.1f %9.1f %6.2f %9d %9d %6.2f", $1, $2, $3, $4, $6, $7, $6 / $7
        if (NF > 8) printf " %13d %13d %6.2f", $8, $9, $8 / $9; printf "   largest difference %s\n", $5 }'
done
