# SPDX-License-Identifier: BSD-2-Clause
"""What ``make demo`` runs: the main job of the project, live, in under a minute.

``__main__`` takes the options, ``scenario`` directs, ``stage`` is where it happens (a fabric, or
the loopback), ``programs`` starts mrc-recv and mrc-send, ``story`` knows what was seen so far,
``view`` shows it, ``summary`` judges it.
"""
