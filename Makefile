# SPDX-License-Identifier: BSD-2-Clause
# The verbs of the project. `make help` lists them. Everything made here lies in .venv/ and build/.

.DEFAULT_GOAL := all
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
Q := $(if $(V),,@)

PYTHON ?= python3
CC := $(if $(filter default undefined,$(origin CC)),gcc,$(CC))
CLANG ?= clang

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

CORE := $(filter-out %_all.c,$(wildcard csrc/core/*.c))
IO := $(filter-out %_all.c,$(wildcard csrc/io/*.c))
UNITS := $(wildcard csrc/core/mrc_core_all.c csrc/io/mrc_io_all.c csrc/sim/mrc_sim_all.c)
LAB := $(wildcard csrc/lab/*.c)
SIM := $(filter-out %_all.c,$(wildcard csrc/sim/*.c)) $(wildcard csrc/tests/world*.c)
CTESTS := $(wildcard csrc/tests/test_*.c)
HEADERS := $(wildcard csrc/core/*.h csrc/io/*.h csrc/lab/*.h csrc/sim/*.h csrc/tests/*.h)
CFORMAT := $(wildcard csrc/bpf/*.[ch]) $(CORE) $(IO) $(SIM) $(LAB) $(HEADERS) $(wildcard csrc/tests/*.c tools/*/*.[ch] tools/*/*/*.[ch])
EXPERIMENTS := $(addprefix build/bench/,uring rings wake walk paths)
RULERS := $(addprefix build/bench/,bare ping crc load work) $(EXPERIMENTS)
EXT_INPUT := $(wildcard csrc/core/*.[ch] csrc/io/*.[ch] csrc/lab/*.[ch] csrc/sim/*.[ch] csrc/ffi/*) pyproject.toml

# ---- build in place -------------------------------------------------------------------------

.PHONY: all
all: $(VENV)/.ext bpf ## build: .venv with the package in place, .venv/bin/mrc-send, mrc-recv and mrc-lab ready

# Quiet unless V=1. Each prerequisite is tried once, and named as the package that has it.
# $(call need,COMMAND,WHAT,PACKAGE)
need = { $(1); } >/dev/null 2>&1 || \
    { echo "make: $(2); Debian and Ubuntu: apt install $(3)" >&2; exit 1; }
HEADER_THERE := import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")

$(VENV)/.python:
	@$(call need,command -v $(PYTHON),no $(PYTHON),python3)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON)" \
	    "is older than 3.11; name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(call need,$(PYTHON) -c 'import venv; import ensurepip',$(PYTHON) has no venv,python3-venv)
	@$(call need,$(PYTHON) -c '$(HEADER_THERE)',Python.h is missing,python3-dev)
	@$(call need,echo 'int main(void){}' | $(CC) -x c -o /dev/null -,$(CC) cannot link,gcc libc6-dev)
	@echo "  VENV $(VENV) ($$($(PYTHON) -V))"
	$(Q)$(PYTHON) -m venv $(VENV)
	@touch $@

# $(call require,KEYS): install what pyproject.toml lists there.
require = $(BIN)/python -c 'import tomllib; d = tomllib.load(open("pyproject.toml", "rb")); \
    print(*(d$(1)), sep="\n")' | $(PIP) install -r /dev/stdin

$(VENV)/.deps: $(VENV)/.python pyproject.toml
	@echo "  PIP  what pyproject.toml needs"
	$(Q)$(call require,["build-system"]["requires"] + d["project"]["dependencies"])
	@touch $@

# compat: a path in a .pth file. An import hook would come too late for a program beside the checkout,
# which takes the folder mrc/ for a package without an __init__.
$(VENV)/.ext: $(VENV)/.deps $(EXT_INPUT)
	@echo "  PIP  mrc in place, with its C extension"
	$(Q)CC=$(CC) $(PIP) install --no-build-isolation --no-deps --config-settings editable_mode=compat -e .
	@touch $@
	@echo "ready: $(BIN)/mrc-recv, $(BIN)/mrc-send, $(BIN)/mrc-lab"

# Marks, trims and damage in mrc-lab; all else of it works without.
BPF := mrc/lab/mrc_fabric.bpf.o
.PHONY: bpf
bpf: $(BPF)
$(BPF): csrc/bpf/mrc_fabric.bpf.c csrc/bpf/mrc_bpf.h
	@if ! command -v $(CLANG) >/dev/null; then \
	    echo "note: no clang here, so no marks, trims or damage in mrc-lab (apt install clang)"; else \
	    echo "  BPF  $@"; $(CLANG) -O2 -g0 -Wall -Wextra -Werror -target bpf \
	        -I/usr/include/$$($(CC) -print-multiarch) -c $< -o $@ || \
	        echo "note: that does not compile here, so no marks, trims or damage in mrc-lab"; fi

$(VENV)/.test: $(VENV)/.deps
	@echo "  PIP  what the test targets need"
	$(Q)$(call require,["project"]["optional-dependencies"]["test"])
	@touch $@

$(VENV)/.dev: $(VENV)/.deps
	@echo "  PIP  what the lint and type targets need"
	$(Q)$(call require,["project"]["optional-dependencies"]["dev"])
	@touch $@

# ---- C: every file alone, and core and io as one unit each --------------------------------------

B ?= build/c
X ?=
WARN := -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum -Werror
CPPFLAGS := -Icsrc/core -Icsrc/io -Icsrc/sim -Icsrc/tests
CFLAGS := -O2 -g -ffp-contract=off -MMD -MP $(WARN) $(X)
STD_core := -std=c11
STD := -std=gnu11 -D_GNU_SOURCE

obj = $(patsubst csrc/%.c,$(B)/%.o,$(1))

$(B)/core/%.o: csrc/core/%.c Makefile
	@mkdir -p $(@D)
	@echo "  CC   $@"
	$(Q)$(CC) $(STD_core) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(B)/%.o: csrc/%.c Makefile
	@mkdir -p $(@D)
	@echo "  CC   $@"
	$(Q)$(CC) $(STD) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# Archives, so that a test is linked with the objects it uses and nothing else.
$(B)/libcore.a: $(call obj,$(CORE))
$(B)/libio.a: $(call obj,$(IO))
$(B)/libsim.a: $(call obj,$(SIM))
$(B)/lib%.a:
	@rm -f $@; mkdir -p $(@D); ar rcs $@ $^

LIBS := $(B)/libcore.a $(B)/libio.a $(B)/libsim.a
LINK = $(CC) $(CFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group -lpthread

$(B)/test_%: $(B)/tests/test_%.o $(LIBS)
	$(Q)$(LINK)
$(B)/vopr: $(B)/tests/vopr.o $(LIBS)
	$(Q)$(LINK)

# The fuzz targets without a fuzzer: random programs from a fixed seed.
FUZZERS := $(wildcard csrc/tests/fuzz_*.c)
$(B)/fuzz_%: csrc/tests/fuzz_%.c $(LIBS)
	@echo "  CC   $@"
	$(Q)$(CC) $(STD) $(CPPFLAGS) $(CFLAGS) -DMRC_FUZZ_MAIN -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group

-include $(wildcard $(B)/*/*.d)
.SECONDARY:

# Those of sockets and threads one by one: some look at who was waited for, and how long.
run_c = xargs -P $(1) -I{} sh -c 'timeout 300 ./{} >{}.out 2>&1; rc=$$?; cat {}.out; \
    [ $$rc = 0 ] || { echo "FAILED: {} (exit $$rc)" >&2; exit 255; }'
.PHONY: ctest
ctest: $(patsubst csrc/tests/%.c,$(B)/%,$(CTESTS)) $(call obj,$(UNITS)) ## C unit tests only
	@printf '%s\n' $(filter-out $(B)/test_io_%,$(filter $(B)/test_%,$^)) | $(call run_c,"$$(nproc)")
	@printf '%s\n' $(filter $(B)/test_io_%,$^) | $(call run_c,1)
	@echo "C unit tests passed: $(words $(CTESTS)) programs"

.PHONY: compile
compile: $(call obj,$(CORE) $(IO) $(SIM) $(LAB) $(UNITS)) ## compile all C with every warning an error
	@if command -v $(CLANG) >/dev/null && [ "$(B)" = build/c ]; then \
	    $(MAKE) compile B=build/clang CC=$(CLANG); \
	elif [ "$(B)" = build/c ]; then echo "note: no clang here, gcc only (apt install clang)"; fi

SAN := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer
.PHONY: asan
asan: ## core, io and C tests under address and undefined sanitizers; the first report fails
	UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) ctest B=build/asan X="$(SAN)"
	UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) sim SEEDS=$(if $(filter command,$(origin SEEDS)),$(SEEDS),100) B=build/asan X="$(SAN)"
	UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) fuzz-random B=build/asan X="$(SAN)"

# Of the pump's tests those with several threads: others count on being fast. The sanitizer wants its
# addresses where setarch -R leaves them.
TSAN_TESTS := test_io_thread test_io_mem test_io_pump test_io_look
.PHONY: tsan
tsan: ## C tests with several threads under the thread sanitizer; the first report fails
	@$(MAKE) B=build/tsan X="-fsanitize=thread" $(patsubst %,build/tsan/%,$(TSAN_TESTS))
	@for t in "test_io_thread" "test_io_mem" "test_io_pump thread"; do \
	    TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1" timeout 300 setarch -R build/tsan/$$t || \
	    { echo "FAILED: $$t" >&2; exit 1; }; done

# ---- tests ----------------------------------------------------------------------------------

PYTEST := $(BIN)/python -m pytest -rs
.PHONY: test
test: ctest bpf $(VENV)/.ext $(VENV)/.test $(RULERS) ## all tests, C and Python; says what could not run and why
	$(PYTEST) $(T)

.PHONY: netns
netns: bpf $(VENV)/.ext $(VENV)/.test $(RULERS) ## only the tests in network namespaces
	$(PYTEST) -m netns

# $(call number,NAME): stops where the variable of that name is no whole number from 1; $(call number,NAME,0): or 0.
number = [[ "$($(1))" =~ ^($(if $(2),0|)[1-9][0-9]*)$$ ]] || \
    { echo "make: $(1)=$($(1)) is not a number from $(or $(2),1)" >&2; exit 2; }

SEEDS ?= 300
TWICE ?= 40
.PHONY: sim
sim: $(B)/vopr ## whole engines in simulated networks: SEEDS=n for seeds 1..n, SEED=n replays one
ifdef SEED
	@$(call number,SEED,0)
	$(B)/vopr -v $(SEED)
else
	@$(call number,SEEDS)
	@$(call number,TWICE)
	@$(B)/vopr -c 1 $(SEEDS) >$(B)/vopr.out 2>&1 && $(B)/vopr -2 -f tools/seedbank.txt 1 $(TWICE) >>$(B)/vopr.out 2>&1 || \
	    { grep -E 'FAIL|PANIC|ERROR' $(B)/vopr.out || tail -20 $(B)/vopr.out; \
	      echo "replay one: make sim SEED=n" >&2; exit 1; }; \
	echo "simulation: seeds 1..$(SEEDS) and the seed bank passed; the bank and 1..$(TWICE) twice, in other memory"
endif

.PHONY: curves
curves: $(B)/test_curves $(VENV)/.python ## convergence of NSCC: run anew, write tests/golden/nscc and the figures
	$(B)/test_curves --write
	$(BIN)/python -m tools.figures.nscc

N ?= 3000
.PHONY: fuzz-random
fuzz-random: $(patsubst csrc/tests/%.c,$(B)/%,$(FUZZERS)) ## N random programs for each fuzz target
	@$(call number,N)
	@for t in $^; do ./$$t -n $(N) >$$t.out 2>&1 || { tail -40 $$t.out; exit 1; }; done; \
	echo "fuzz: $(words $^) targets survived $(N) random programs each"

MIN ?= 1
.PHONY: fuzz
fuzz: ## libFuzzer (clang): T=wire MIN=5; without T every target in turn
	@$(call need,command -v $(CLANG),fuzzing needs clang,clang)
	@$(call number,$(if $(SEC),SEC,MIN))
	@$(if $(T),[ -f csrc/tests/fuzz_$(T).c ] || { echo "make: no fuzz target T=$(T); there are: $(patsubst csrc/tests/fuzz_%.c,%,$(FUZZERS))" >&2; exit 2; })
	@mkdir -p build/fuzz
	@for f in $(if $(T),csrc/tests/fuzz_$(T).c,$(FUZZERS)); do \
	    n=$$(basename $$f .c); mkdir -p build/fuzz/$$n.corpus; \
	    $(CLANG) $(STD) $(CPPFLAGS) -O1 -g $(SAN) -fsanitize=fuzzer $$f $(CORE) -o build/fuzz/$$n || exit; \
	    build/fuzz/$$n -max_total_time=$(if $(SEC),$(SEC),$$(( $(MIN) * 60 ))) -artifact_prefix=build/fuzz/$$n- \
	        build/fuzz/$$n.corpus $$( [ ! -d csrc/tests/$$n.corpus ] || echo csrc/tests/$$n.corpus ) || exit; \
	done

.PHONY: scenarios
scenarios: $(VENV)/.ext $(VENV)/.test ## the published experiments on the emulated fabric: figures and docs/reference/scenarios.md (T=name: one)
	@$(BIN)/python -m tools.scenarios $(T)

# ---- the main job, and how fast it is ----------------------------------------------------------

.PHONY: demo
demo: $(VENV)/.ext ## a fabric of namespaces, 16 SRv6 paths, a cut and a heal (ARGS="--duration 20"; ARGS=--help)
	@$(BIN)/python -m tools.demo $(ARGS) || [ $$? -eq 141 ] # 141: nobody reads, as with | head

# Only where libfabric's headers are there (libfabric-dev); the scorecard names what is missing.
RXD := $(and $(wildcard /usr/include/rdma/fabric.h),build/scorecard/rxd)

.PHONY: bench
bench: $(VENV)/.ext $(RULERS) $(RXD) $(if $(findstring --figure,$(ARGS))$(findstring --page,$(ARGS)),$(VENV)/.figures) ## ours, bare loops and peers in turn (ARGS="--only bulk,latency"; --quick: does it run?)
	@$(BIN)/python -m tools.bench $(ARGS)

.PHONY: scorecard
scorecard: $(VENV)/.ext $(VENV)/.figures $(RXD) ## MRC beside TCP, MPTCP, libfabric and SRT under the same faults (ARGS="--quick --peers mrc,mptcp")
	@$(BIN)/python -m tools.scorecard $(ARGS)

# What draws is no must: where it cannot be had, the tables come without figures.
$(VENV)/.figures: $(VENV)/.deps
	@echo "  PIP  what draws figures"
	$(Q)$(call require,["project"]["optional-dependencies"]["figures"]) && touch $@ || echo "note: no figures"

build/scorecard/rxd: tools/scorecard/ends/rxd.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) -O2 $(WARN) $< -o $@ -lfabric

.PHONY: bench-core
bench-core: build/bench/core ## instructions per packet of the C core alone (needs valgrind)
	@python3 -m tools.bench.core

# The core as the package has it: pyproject.toml, and what Python adds for a shared object.
SHIPPED := -O3 -std=gnu11 -ffp-contract=off -fvisibility=hidden -fPIC -fwrapv
build/bench/core: tools/bench/core.c $(wildcard csrc/core/*.[ch]) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(SHIPPED) -g -Icsrc/core $< csrc/core/mrc_core_all.c -o $@

build/bench/bare build/bench/ping: build/bench/%: tools/bench/%.c $(wildcard tools/bench/*.h) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) -O2 $(WARN) $< -o $@

$(EXPERIMENTS): build/bench/%: tools/bench/experiments/%.c $(wildcard tools/bench/*.h tools/bench/experiments/*.h) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) -O2 $(WARN) $< -o $@ -lm -lpthread

build/bench/work: tools/bench/experiments/work.c csrc/core/mrc_icrc.c tools/bench/loop.h $(HEADERS) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) -O3 $(WARN) -Icsrc/core $(filter %.c,$^) -o $@

# With the options of the extension module: what it measures is what Python runs.
build/bench/crc: tools/bench/crc.c csrc/core/mrc_icrc.c $(HEADERS) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) -O3 $(WARN) -Icsrc/core $(filter %.c,$^) -o $@

build/bench/load: tools/bench/load.c tools/bench/load_end.c $(wildcard csrc/core/*.c csrc/io/*.c tools/bench/*.h) $(HEADERS) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) -O3 -ffp-contract=off $(WARN) -Icsrc/core -Icsrc/io tools/bench/load.c tools/bench/load_end.c \
	    csrc/core/mrc_core_all.c csrc/io/mrc_io_all.c -o $@ -lpthread

# ---- checks ---------------------------------------------------------------------------------

PYDIRS := $(wildcard mrc tests tools)
.PHONY: lint
lint: $(VENV)/.dev includes purity ## ruff, clang-format, layers of C and Python, purity of the core
	$(BIN)/ruff check $(PYDIRS)
	$(BIN)/lint-imports --no-cache
	@echo "clang-format: $(words $(CFORMAT)) files"
	$(Q)$(BIN)/clang-format --dry-run -Werror $(CFORMAT)

.PHONY: includes
includes: ## which C file may include which
	$(PYTHON) tools/check_includes.py

.PHONY: purity
purity: ## the core calls nothing outside itself and has no writable data
	CC=$(CC) $(PYTHON) tools/check_purity.py

.PHONY: type
type: $(VENV)/.ext $(VENV)/.test $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy $(PYDIRS)

.PHONY: conformance
conformance: ## the rows of tests/conformance name what exists, and their page says what they say
	@$(PYTHON) -m tools.conformance check

.PHONY: conformance-page
conformance-page: ## write docs/reference/conformance.md
	@$(PYTHON) -m tools.conformance write

.PHONY: prove
prove: $(VENV)/.ext $(VENV)/.test ## try the mutants of rows not proved; ROWS="A.4 B.4-2", ARGS=--all
	@$(BIN)/python -m tools.conformance prove $(ARGS) $(ROWS)

.PHONY: format
format: $(VENV)/.dev ## rewrite C and Python to the house format
	$(BIN)/ruff check --fix-only -q $(PYDIRS)
	$(BIN)/clang-format -i $(CFORMAT)

.PHONY: ffi
ffi: $(VENV)/.deps ## regenerate the bindings from mrc.cdef and sim.cdef
	$(BIN)/python tools/gen_ffi.py

.PHONY: ffi-check
ffi-check: $(VENV)/.deps ## fail if a committed binding differs from its cdef
	$(BIN)/python tools/gen_ffi.py --check

.PHONY: ci
ci: ## what .ci/run runs after it has installed the Debian packages
	$(MAKE) test lint type ffi-check conformance compile asan
	$(MAKE) sim
	$(MAKE) prove ARGS="--seconds 120"

.PHONY: clean
clean: ## remove everything made here
	rm -rf $(VENV) build dist *.egg-info mrc/*.so mrc/lab/*.so $(BPF) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help
help: ## this list
	@set +o pipefail; sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | \
	    while IFS=$$'\t' read -r t d; do printf '%-16s %s\n' "$$t" "$$d"; done
