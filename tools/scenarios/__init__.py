# SPDX-License-Identifier: BSD-2-Clause
"""All scenarios at once: figures, and a page of what the paper says beside what we got."""
