# SPDX-License-Identifier: BSD-2-Clause
"""The protocol one can execute: small, slow, obvious; standard library only.

Production code never imports it. It is written from the specification text, separately from the
C core, and serves as the core's twin where the text leaves no choice and as its checker where it
does.
"""
