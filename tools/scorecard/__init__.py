# SPDX-License-Identifier: BSD-2-Clause
"""``make scorecard``: MRC beside what its users would take instead, under the same faults.

``cases`` says what happens to the fabric and when, ``peers`` who sends over it and how, ``stage``
holds the fabric, ``play`` runs one peer through one case, ``judge`` makes figures of the samples,
``report`` and ``draw`` show them. ``ends`` are the programs that run in the hosts.
"""
