# SPDX-License-Identifier: MIT-0
# forms_chip.py PROGRAMS FOLDER INPUT=N,C,H,W X.npy NAME=FILE.onnx...: the integer C files (onnx_c --integers) of networks in 8 bits on an
# emulated Cortex-M7: flash (code and constants), RAM (values and outputs, without stack and input), and the instructions of one inference,
# which qemu counts (chip.c). INPUT has this size there; the first sample of X.npy, of the same shape, is evaluated. On this machine the
# file is within a step, one of 255 of the largest output, of the evaluator, or that is said; on the chip it has the bits of this machine.
# The last column is the RAM for values at the size that the file has, where it has one. Needs onnx, NumPy, cc, arm-none-eabi-gcc and qemu-system-arm.
import os
import re
import subprocess
import sys

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
programs, folder = sys.argv[1:3]
name, dims = sys.argv[3].split('=')
dims = [int(d) for d in dims.split(',')]
x = np.load(sys.argv[4], mmap_mode='r')[:1].astype(np.float32)
FLASH, RAM = 4 << 20, 4 << 20
STACK = 2048


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def c_file(path, to):
    """Writes the C file, and returns its text."""
    run(programs + '/onnx_c', path, '-o', to, '--integers')
    with open(to, encoding='utf-8') as f:
        return f.read()


def sized(path, to):
    """The same file with the size of its input. Returns the name of its output."""
    model = onnx.load(path)
    for axis, n in zip(model.graph.input[0].type.tensor_type.shape.dim, dims):
        axis.dim_value = n
    del model.graph.value_info[:]
    model.graph.output[0].type.tensor_type.ClearField('shape')
    onnx.save(model, to)
    return model.graph.output[0].name


def full_size(path):
    """KB for values at the size that the file declares, or nothing."""
    declared = onnx.load(path).graph.input[0].type.tensor_type.shape.dim
    if any(axis.dim_value < 1 for axis in declared):
        return ''
    return '%d' % (int(re.search(r'net_work = (\d+)', c_file(path, folder + '/net.c')).group(1)) // 1024)


def rows(values, form):
    return ''.join('    %s,\n' % ', '.join(form % v for v in values[k:k + 16]) for k in range(0, len(values), 16))


def header(text, output):
    """chip_net.h: the file, the sample on its grid, and what the evaluator computes from that."""
    scale, zero = (re.search('net_X_%s (.*?)f?\n' % what, text) for what in ('SCALE', 'ZERO'))
    scale, zero = float(scale.group(1)), int(zero.group(1))
    image = np.clip(np.rint(x / scale) + zero, 0, 255)
    np.save(folder + '/x.npy', ((image - zero) * scale).astype(np.float32))
    run(programs + '/onnx_run', folder + '/sized.onnx', '--input', name + '=' + folder + '/x.npy', '--output', output + '=' + folder + '/y.npy')
    y = np.load(folder + '/y.npy').ravel()
    kind = re.search(r'void net\((\w+) \*', text).group(1)
    with open(folder + '/chip_net.h', 'w', encoding='utf-8') as f:
        f.write('#include "net.c"\n#define CHIP(what) net_##what\n#define CHIP_RUN net\n#define CHIP_OUTPUT %s\n' % kind)
        f.write('' if 'net_Y_SCALE' in text else '#define net_Y_SCALE 1\n')
        f.write('enum { CHIP_IMAGES = 1 };\nstatic const uint8_t image[1][%d] = { {\n%s} };\n' % (image.size, rows(image.ravel(), '%d')))
        f.write('#ifdef CHIP_HOSTED\nstatic const float expected[%d] = {\n%s};\n#endif\n' % (y.size, rows(y, '%.9e')))


def here():
    """Runs the file on this machine. Returns the hash, and how far it is from the evaluator."""
    run('cc', '-std=gnu99', '-O2', '-DCHIP_HOSTED', '-I' + folder, HERE + '/chip.c', '-o', folder + '/hosted', '-lm')
    said = run(folder + '/hosted').split()
    return said[1], float(said[3])


def chip():
    """Runs it on the chip. Returns hash, instructions, bytes of flash without the sample, and of RAM."""
    program = folder + '/chip.elf'
    run('arm-none-eabi-gcc', '-mthumb', '-specs=nosys.specs', '-mcpu=cortex-m7', '-mfloat-abi=hard', '-mfpu=fpv5-d16', '-std=gnu99', '-O2',
        '-ffunction-sections', '-fdata-sections', '-I' + folder, HERE + '/chip.c', '-nostartfiles', '-Wl,--gc-sections',
        '-Wl,--defsym=FLASH=0,--defsym=FLASH_SIZE=%d,--defsym=RAM=0x20000000,--defsym=RAM_SIZE=%d' % (FLASH, RAM), '-T', HERE + '/chip.ld',
        '-o', program)
    said = run('qemu-system-arm', '-semihosting-config', 'enable=on,target=native', '-M', 'mps2-an500', '-nographic', '-icount', 'shift=0',
               '-kernel', program, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT).split()
    text, data, zeros = [int(n) for n in run('arm-none-eabi-size', program).split('\n')[1].split()[:3]]
    return said[1], int(said[3]), text + data - x.size, zeros - STACK


def main():
    os.makedirs(folder, exist_ok=True)
    print('| network | flash, KB | RAM, KB | 10^6 instructions | apart from the evaluator, steps | RAM at full size, KB |')
    print('|---|---|---|---|---|---|')
    for arg in sys.argv[5:]:
        row, path = arg.split('=', 1)
        full = full_size(path)
        output = sized(path, folder + '/sized.onnx')
        header(c_file(folder + '/sized.onnx', folder + '/net.c'), output)
        mine, apart = here()
        its, instructions, flash, ram = chip()
        if its != mine:
            sys.exit('%s: on the chip the outputs are others: hash %s, not %s' % (row, its, mine))
        print('| %s | %d | %d | %.1f | %.1f | %s |' % (row, flash // 1024, ram // 1024, instructions / 1e6, apart, full), flush=True)


main()
