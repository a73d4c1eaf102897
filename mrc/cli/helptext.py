# SPDX-License-Identifier: BSD-2-Clause
"""The prose of --help."""

_CODES = """\
exit codes:
  0    everything arrived
  1    the command line cannot be run as given
  2    data was lost, differs, or could not be verified
  3    the peer cannot be reached, refused, or vanished
  4    this host lacks something (named: a capability, a sysctl, a port, an
       stdout that takes the report)
  130  stopped by Ctrl-C or SIGTERM, or because nobody reads stdout any more;
       reports hold what was measured so far

environment:
  MRC_SEED   the seed, where --seed is not given
  MRC_PUMP   loop or thread, where --pump is not given
  NO_COLOR   no colour, even on a terminal
  MRC_DEBUG  show the Python traceback of any error

units:
  sizes (-s, --sweep, --window) take k, M, G: powers of 1024
  counts (-n) take k, M, G: powers of 1000
  times take ms, s, m, h
"""

RECV_ABOUT = """\
Take data from mrc-send: memory exposed to remote writes over many paths (MRC).
Serves one client after the other until it is stopped; a client that vanishes
is reported and given up."""

RECV_EPILOG = f"""\
examples:
  mrc-recv                           listen on all addresses, TCP port 18515
  mrc-recv -1 -o /srv/in             keep the files of one client, then exit
  mrc-recv -B fd00::2 --json-stream  one JSON object a line while tests run

{_CODES}"""

SEND_ABOUT = """\
Write data into the memory of an mrc-recv, one connection sprayed over many
paths (MRC), and report goodput, retransmissions and the state of every path."""

SEND_EPILOG = f"""\
what "verified" means:
  Each message is a different slice of pseudo-random data that both ends make
  from one seed. The receiver compares every byte where it was placed, before it
  gives the slot back. Files are compared by SHA-256 of what was read and what
  was written. Without --verify only the count of bytes placed is compared.

examples:
  mrc-send fd00::2                          10 s of verified 1 MiB writes
  mrc-send fd00::2 -e 64 -t 30 --no-verify  64 paths, plain writes
  mrc-send fd00::2 --file a.bin b.bin       two files
  mrc-send fd00::2 --latency -n 10k         latency of 64-byte writes
  mrc-send fd00::2 --sweep 64:1M            one line for each message size
  mrc-send fd00::2 -P 4 --bidir --json      4 connections, both directions

{_CODES}"""
