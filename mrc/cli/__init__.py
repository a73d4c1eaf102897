# SPDX-License-Identifier: BSD-2-Clause
"""The commands: mrc-send and mrc-recv."""
