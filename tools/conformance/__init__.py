# SPDX-License-Identifier: BSD-2-Clause
"""The conformance table: requirements, where they are implemented, the proof that tests see them.

docs/howto/add-a-requirement.md says how a row is written, and what a proof covers.
"""
