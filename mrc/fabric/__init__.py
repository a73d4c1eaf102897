# SPDX-License-Identifier: BSD-2-Clause
"""The vocabulary of fabrics: shapes, faults, scenarios, records and what is computed from them.

Pure: no system call, no clock.
"""
