# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the documentation, drawn from committed data."""
