# Everything starts here.  `make setup PYTHON=/path/to/python3` chooses the interpreter.
export PYTHON

.PHONY: setup cuda demo test fast process live test-long check house mutants bench clean

setup:  ## .venv with the command .venv/bin/harness, Hadoop's jars and ours
	@scripts/setup core

cuda:  ## setup, and the GPU workloads' library for CUDA devices (105 MB of compiler; needs g++, no GPU)
	@HARNESS_CUDA=1 scripts/setup core

demo:  ## a real cluster, a small grid, predictions, scores, a report
	@echo "demo: the set-up takes one to five minutes the first time, the 16 trials about 7 on two cores"
	@$(MAKE) --no-print-directory setup
	.venv/bin/harness all experiments/demo.yaml

test:  ## three rings: fast, process, live
	@scripts/setup dev
	@$(MAKE) --no-print-directory fast process live

fast process live: export PYTHONDONTWRITEBYTECODE :=  # Python compiles what it imports once, not in each process

fast process: export OMP_NUM_THREADS := 1  # a worker of pytest to each core, and no threads of libraries beside it

fast:  ## no process, compiler, JVM or figure
	.venv/bin/pytest -n auto --dist loadfile -m "not process and not live and not long"

process:  ## what starts processes, compilers and JVMs, or draws
	.venv/bin/pytest -n auto -m "process and not live and not long" --hypothesis-profile thorough

live:  ## real clusters of this machine; the image of a Docker node is made first, once for its content
	.venv/bin/python -m tests.live.engine
	.venv/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "live and not long and not alone"
	.venv/bin/pytest -m "live and not long and alone"

test-long:  ## what takes many minutes
	@scripts/setup dev
	.venv/bin/pytest -m long

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
