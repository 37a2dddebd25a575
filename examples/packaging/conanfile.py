# SPDX-License-Identifier: MIT-0
# Conan 2: conan create examples/packaging; LGELU_IMPLEMENTATION is defined in one file of the consumer.
import os
from conan import ConanFile
from conan.tools.files import copy

class Lgelu(ConanFile):
    name = "lgelu"
    version = "1.0.0"
    license = "MIT-0"
    description = "λ-GELU kernels, learned hardness, exact ReLU-ization"
    package_type = "header-library"
    settings = "os"
    no_copy_source = True

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for name in ("lgelu.h", "LICENSE"):
            copy(self, name, root, self.export_sources_folder)

    def package(self):
        copy(self, "lgelu.h", self.source_folder, os.path.join(self.package_folder, "include"))
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.get_safe("os") != "Windows":
            self.cpp_info.system_libs = ["m"]
