# Needs Python 3.11 or newer (PYTHON=/path/to/python3 to choose one); everything else goes into ./.venv.
#   make run        the example: a broker, real clients, Spark, one table at the end   INPUT=file.jsonl KEEP=1
#   make test       the whole test suite                                              ARGS="-k stomp"
#   make quick      what tells most within a minute: format, lint, rules, the tests of all that does no input or output
#   make check      format, lint, rules, types, the whole suite, part of it compiled, cluster; CI runs it and `interop`
#   make compiled   a wheel compiled by mypyc, and all tests but Spark's against it    DELOSMQ_OPT=0 builds quickly
#   make simulate   histories of a whole broker: clients of all kinds, failing disks    SEEDS=1000 FROM=0 JOBS=2
#   make properties  the tests with made-up examples, TIMES as many, before a release   TIMES=100 SEED=1 ARGS="-k model"
#   make bench      the benchmarks; ARGS=count counts instructions against the base   ARGS="..."
#   make cluster    Spark's pipelines on a real cluster, master and workers, with kills ARGS="--kills 200"
#   make interop    the real Java client on DelosMQ and on ActiveMQ Classic, compared  ARGS="redelivery --case AUTO"

# Or every process that a test starts would compile all of DelosMQ anew.
unexport PYTHONDONTWRITEBYTECODE

BOOTSTRAP = @sh tools/python tools/bootstrap.py
IN_VENV   = @env -u PYTHONPATH .venv/bin/python

.PHONY: run test quick check compiled simulate properties bench cluster interop

run:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m examples.orders.main

test:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m pytest -n 2 --dist loadgroup $(ARGS)

quick:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m tools.check format lint rules quick

check:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m tools.check

compiled:
	$(BOOTSTRAP) compiled
	@env -u PYTHONPATH DELOSMQ_EXPECT_COMPILED=1 .venv-compiled/bin/python -m pytest -m "not spark and not sources" $(ARGS)

SEEDS ?= 1000
FROM ?= 0
JOBS ?= 2

simulate:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m tests.simulation --seeds $(SEEDS) --from $(FROM) --jobs $(JOBS)

TIMES ?= 100
SEED ?= 1

properties:
	$(BOOTSTRAP) venv
	@env -u PYTHONPATH DELOSMQ_EXAMPLES=$(TIMES) .venv/bin/python -m pytest -m hypothesis --hypothesis-seed=$(SEED) $(ARGS)

bench:
	$(BOOTSTRAP) compiled
	$(IN_VENV) -m benchmarks $(ARGS)

cluster:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m tests.spark.cluster $(ARGS)

interop:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m interop $(ARGS)

# one step of `check`: format-only, lint-only, rules-only, types-only, compiled-only, test-only
%-only:
	$(BOOTSTRAP) venv
	$(IN_VENV) -m tools.check $*
