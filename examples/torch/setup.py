# SPDX-License-Identifier: MIT-0
"""Compiles the two libraries behind lgelu.py with the C compiler, for pip: liblgelu_torch.so and liblgelu_convert.so are installed
beside lgelu.py, which finds them there.

    pip install --no-build-isolation examples/torch

Their sources are in the repository, outside of this folder. A source distribution carries them in the folder `sources`, by the
same paths. CC and CFLAGS choose the compiler and its flags, as everywhere in Python's builds."""
import glob, os, re, shutil, tempfile
from multiprocessing.pool import ThreadPool
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
try: from setuptools.command.bdist_wheel import bdist_wheel
except ImportError: from wheel.bdist_wheel import bdist_wheel

here = os.path.dirname(os.path.abspath(__file__))
packed = os.path.join(here, "sources")
root = packed if os.path.isdir(packed) else os.path.dirname(os.path.dirname(here))

# What is compiled, as examples/Makefile has it, and the folders whose headers it includes.
FOLDERS = ["common", "reluize/onnx", "reluize/ops", "reluize/passes"]
TORCH = ["torch/lgelu_torch.c"]
CONVERT = ["torch/lgelu_convert.c", "reluize/onnx/onnx_graph.c", "reluize/ops/*.c", "reluize/passes/least_squares.c",
           "reluize/passes/onnx_gates.c", "reluize/passes/onnx_relu*.c", "reluize/passes/onnx_rewrite.c"]

def files(patterns):
    """The files of examples/ that match, by their full paths."""
    found = [sorted(glob.glob(os.path.join(root, "examples", p))) for p in patterns]
    missing = [p for p, f in zip(patterns, found) if not f]
    if missing: raise SystemExit(f"lgelu: there is no {', '.join(missing)} in {root}/examples; install from the whole repository")
    return sum(found, [])

header = os.path.join(root, "lgelu.h")
headers = [header] + files([f"{folder}/*.h" for folder in FOLDERS])

def version():
    with open(header, encoding="utf-8") as f: return re.search(r'^#define LGELU_VERSION "(.*)"', f.read(), re.M).group(1)

def library(name, patterns):
    return Extension(name, files(patterns), depends=headers, include_dirs=[os.path.join(root, "examples", f) for f in FOLDERS])

class BuildLibraries(build_ext):
    """Each library is one shared object that Python loads by ctypes, so that one build serves all versions of Python."""
    def get_ext_filename(self, name): return name + ".so"

    def get_export_symbols(self, ext): return []

    def get_source_files(self): return []             # which are outside of this folder: WithSources packs them

    def openmp(self):
        """The flag for OpenMP, if a program can be compiled and linked with it."""
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "openmp.c")
            with open(source, "w") as f: f.write("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
            try:
                objects = self.compiler.compile([source], output_dir=folder, extra_postargs=["-fopenmp"])
                self.compiler.link_executable(objects, os.path.join(folder, "openmp"), extra_postargs=["-fopenmp"])
            except Exception: return []
        return ["-fopenmp"]

    def build_extension(self, ext):
        path, when = self.get_ext_fullpath(ext.name), os.path.getmtime
        if not self.force and os.path.exists(path) and all(when(f) < when(path) for f in ext.sources + ext.depends): return
        openmp = self.openmp()
        def compiled(source):
            return self.compiler.compile([source], output_dir=self.build_temp, include_dirs=ext.include_dirs,
                                         extra_postargs=["-std=c99", "-g0", *openmp])
        with ThreadPool(os.cpu_count()) as pool: objects = sum(pool.map(compiled, ext.sources, 1), [])
        self.compiler.link_shared_object(objects, path, libraries=["m"], extra_postargs=openmp)

class AnyPython(bdist_wheel):
    """The libraries depend on the machine, and on no version of Python."""
    def get_tag(self): return "py3", "none", super().get_tag()[2]

class WithSources(sdist):
    """The source distribution, with the C sources of the repository."""
    def make_release_tree(self, folder, names):
        super().make_release_tree(folder, names)
        for path in [header] + headers[1:] + files(TORCH + CONVERT):
            copy = os.path.join(folder, "sources", os.path.relpath(path, root))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(path, copy)

# What is built on the way goes where `make -C examples clean` removes it.
options = {}
if root != packed:
    base = os.path.join(root, "examples", "build", "python")
    os.makedirs(base, exist_ok=True)
    options = {"build": {"build_base": base}, "egg_info": {"egg_base": base}}

setup(version=version(), ext_modules=[library("liblgelu_torch", TORCH), library("liblgelu_convert", CONVERT)], options=options,
      cmdclass={"build_ext": BuildLibraries, "bdist_wheel": AnyPython, "sdist": WithSources})
