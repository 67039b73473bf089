# Everything starts here.  `make setup PYTHON=/path/to/python3` chooses the interpreter.
export PYTHON

.PHONY: setup cuda demo test test-long check bench clean

setup:  ## .venv with the command .venv/bin/harness, Hadoop's jars and ours
	@scripts/setup core

cuda:  ## setup, and the GPU workloads' library for CUDA devices (105 MB of compiler; needs g++, no GPU)
	@HARNESS_CUDA=1 scripts/setup core

demo: setup  ## a real cluster, a small grid, predictions, scores, a report
	.venv/bin/harness all experiments/demo.yaml

test:  ## the fast suite, then live clusters
	@scripts/setup dev
	.venv/bin/pytest -n auto -m "not live and not long"
	.venv/bin/pytest -m "live and not long"

test-long:  ## what takes many minutes
	@scripts/setup dev
	.venv/bin/pytest -m long

check:  ## lint, format, types, layers, and pins that name no registry
	@scripts/setup dev
	.venv/bin/ruff check . && .venv/bin/ruff format --check .
	.venv/bin/mypy && .venv/bin/lint-imports
	! grep -n '://' requirements/*.txt

bench:  ## measures; wants an idle machine
	@scripts/setup bench
	set -e; for b in bench/bench_*.py; do echo "== $$b"; .venv/bin/python $$b; done

clean:  ## all that setup made; results stay
	rm -rf .venv .cache workloads/*/target workloads/*/*/target workloads/hadoop-home/home
