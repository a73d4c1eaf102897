# SPDX-License-Identifier: BSD-2-Clause
"""Programs in Python that run in the hosts of the bench, as those of the scorecard do."""
