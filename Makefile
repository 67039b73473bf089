# Everything starts here.  `make setup PYTHON=/path/to/python3` chooses the interpreter.
export PYTHON

.PHONY: setup cuda demo test fast process live test-long check house mutants bench clean

setup:  ## .venv with the command .venv/bin/harness, Hadoop's jars and ours
	@scripts/setup core

cuda:  ## setup, and the GPU workloads' library for CUDA devices (105 MB of compiler; needs g++, no GPU)
	@HARNESS_CUDA=1 scripts/setup core

demo:  ## a real cluster, a small grid, predictions, scores, a report
	@echo "demo: the set-up takes one to five minutes the first time, the 21 trials about 9 on two cores"
	@$(MAKE) --no-print-directory setup
	.venv/bin/harness all experiments/demo.yaml

test:  ## three rings: fast, process, live
	@scripts/setup dev
	@$(MAKE) --no-print-directory fast process live

# The tests of each part of harness/: make fast PART=models, make process PART=models.
# What several parts share stands in several rows.
tests-of-anchoring := anchoring
tests-of-base := hadoop records stats test_text.py
tests-of-models := contracts/test_models.py models sim validation
tests-of-observe := parsing profiling store/test_recordings.py
tests-of-clusters := contracts/test_crafted.py contracts/test_load.py contracts/test_outside.py \
	contracts/test_providers.py contracts/test_workloads.py \
	hadoop_home ltrace monitor node providers workloads
tests-of-core := evaluate experiment hostile reports run store
tests-of-scoring := scoring
tests-of-catalog := catalog run/test_imports.py
tests-of-pseudonyms := publish/test_evidence.py publish/test_pseudonyms.py publish/test_whole_bundle.py
tests-of-nightly := bench/test_nightly.py evaluate/test_alarms.py reports/test_nightly.py run/test_nightly.py
tests-of-hardware := hardware cli/test_calibrate.py evaluate/test_transfer.py profiling/test_platform.py run/test_calibrate.py
tests-of-past := catalog/test_command.py run/test_imports.py
tests-of-tuning := cli/test_ask.py cli/test_tune.py evaluate/test_ask.py evaluate/test_tune.py run/test_tune.py tuning
tests-of-publish := publish scoring/test_definitions.py
tests-of-export := api/test_export.py api/test_interchange.py
tests-of-tracer := bench/test_tracer_effects.py bench/test_tracer_tasks.py cli/test_trace.py ltrace tracer
tests-of-doctor := doctor
tests-of-cli := cli docs
tests-of-api := api docs/test_api.py
paths = $(addprefix tests/,$(if $(PART),$(or $(tests-of-$(PART)),$(error no tests of a part called $(PART)))))

fast process live: export PYTHONDONTWRITEBYTECODE :=  # Python compiles what it imports once, not in each process
fast process: export OMP_NUM_THREADS := 1  # a worker of pytest to each core, and no threads of libraries beside it

# The files of the fast ring lie in memory, where 2 GB of it are free for files.
memory = $(shell [ -w /dev/shm ] && [ $$(df -B 1M --output=avail /dev/shm | tail -n 1) -ge 2000 ] && echo /dev/shm)
fast: export TMPDIR := $(or $(memory),$(TMPDIR))

fast:  ## no process, compiler, JVM or figure, nothing that computes for seconds; of one part: make fast PART=models
	@[ -x .venv/bin/pytest ] || scripts/setup dev
	.venv/bin/pytest -n auto --dist worksteal -m "not process and not live and not long" \
		-o tmp_path_retention_policy=failed $(paths)

process:  ## what starts processes, compilers and JVMs, draws, or computes for seconds; PART as above
	@[ -x .venv/bin/pytest ] || scripts/setup dev
	.venv/bin/pytest -n $$(($$(nproc) + 1)) --dist worksteal -m "process and not live and not long" --hypothesis-profile thorough $(paths)

live:  ## real clusters of this machine; the image of a Docker node is made first, once for its content
	@[ -x .venv/bin/pytest ] || scripts/setup dev
	.venv/bin/python -m tests.live.engine
	.venv/bin/pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "live and not long and not alone"
	.venv/bin/pytest -m "live and not long and alone"

test-long:  ## what takes many minutes: 75 in all; three at a time as most of it waits, then what wants the machine
	@scripts/setup dev
	.venv/bin/python -m tests.live.engine
	.venv/bin/pytest -n 3 --dist loadgroup --no-loadscope-reorder -m "long and not alone"
	.venv/bin/pytest -m "long and alone"

check:  ## lint, format (Python and Java), types, layers, pins that name no registry and have no known flaw
	@scripts/setup dev
	.venv/bin/ruff check . && .venv/bin/ruff format --check .
	.venv/bin/mypy && .venv/bin/lint-imports
	! grep -n '://' requirements/*
	.venv/bin/python scripts/audit
	.venv/bin/python scripts/house --check
	set -e; for java in workloads bench/ltrace bench/history; do \
		scripts/mvn -q -B -ntp -f $$java/pom.xml com.diffplug.spotless:spotless-maven-plugin:2.44.5:check; done

house:  ## what a reader of the code feels, as two tables of docs/design.md
	.venv/bin/python scripts/house --write

mutants:  ## faults that the tests of a package find: make mutants PACKAGE=scoring
	@scripts/setup mutants
	.venv/bin/python scripts/mutants $(PACKAGE)

bench:  ## measures; wants an idle machine
	@scripts/setup bench
	set -e; for b in bench/bench_*.py; do echo "== $$b"; .venv/bin/python $$b; done

clean:  ## all that setup made; results stay
	rm -rf .venv .cache workloads/*/target workloads/*/*/target workloads/hadoop-home/home
