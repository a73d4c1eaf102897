# SPDX-License-Identifier: BSD-2-Clause
"""What pyproject.toml cannot say: mrc-lab's tc program is compiled into the package (ADR 0098)."""

import logging
import shutil
import subprocess
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path(__file__).parent / "csrc" / "bpf" / "mrc_fabric.bpf.c"
log = logging.getLogger(__name__)
LACKS = "no marks, trims or damage in mrc-lab; all else of it works"


class BuildWithBpf(build_py):
    """Where clang is not, or cannot, the package is as good, but for that."""

    def run(self) -> None:
        """Copy what is Python, then compile."""
        super().run()
        if self.editable_mode:  # make does it
            return
        target = Path(self.build_lib, "mrc", "lab", "mrc_fabric.bpf.o")
        target.unlink(missing_ok=True)  # of another day
        clang = shutil.which("clang")
        if clang is None:
            log.warning("no clang here: %s (apt install clang)", LACKS)
            return
        headers = f"-I/usr/include/{sysconfig.get_config_var('MULTIARCH')}"
        command = [clang, "-O2", "-g0", "-target", "bpf", headers, "-c", str(SOURCE)]
        if subprocess.run([*command, "-o", str(target)], check=False).returncode:
            log.warning("%s does not compile here: %s", SOURCE.name, LACKS)


setup(cmdclass={"build_py": BuildWithBpf})
