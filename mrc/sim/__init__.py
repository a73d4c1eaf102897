# SPDX-License-Identifier: BSD-2-Clause
"""Whole engines on an emulated fabric, in virtual time. `import mrc` does not need it."""
