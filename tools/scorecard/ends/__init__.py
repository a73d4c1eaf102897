# SPDX-License-Identifier: BSD-2-Clause
"""The programs that run in the hosts: senders, receivers that sample, and a sampler of interfaces.

Each says ``ready`` on a line when the other end may start, works until SIGTERM, and then prints one
JSON object: ``columns`` and ``samples`` (the first column is CLOCK_MONOTONIC in ns), and what else
it knows.
"""
