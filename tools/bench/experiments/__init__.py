# SPDX-License-Identifier: BSD-2-Clause
"""Experiments: each row asks whether one thing would remove a cost."""
