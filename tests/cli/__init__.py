# SPDX-License-Identifier: BSD-2-Clause
"""The commands: parts, whole runs over a stand-in, and over real sockets."""
