# The two commands of the README are `make demo` and `make test`. They need Python >= 3.11, a JRE >= 17 and package registries.

PY := .venv/bin/python
# Each test process may have a JVM and servers of its own behind it: four of them are enough for any machine. Servers that were
# started by hand serve one process.
ifneq ($(APPLIER_TEST_MYSQL_URL)$(APPLIER_TEST_KAFKA),)
WORKERS ?= 0
endif
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -gt 4 ] && echo 4 || echo $$n)
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help env demo screenshots test fast lint format coverage docs docs-pages bench microbench soak chaos wheel check-wheel release image wheelhouse images servers clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

env: ## make or refresh .venv
	@.ci/environment

demo: env ## embedded broker, simulated upstream, SQLite: shows the whole thing in a minute
	@.venv/bin/applier demo $(DEMO_ARGS)

screenshots: env ## docs/images: the web page in Chromium, in each state
	@PYTHONPATH=. $(PY) tests/browser/screenshots.py

test: env ## all tests; those on real Kafka, MariaDB and MySQL where a Docker engine answers
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

fast: env ## tests that need no server
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal -m "not integration and not slow" $(PYTEST_ARGS)

lint: env ## ruff, its formatter, mypy, import contracts
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

format: env ## let ruff mend and format
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

coverage: env ## branch coverage of the fast tests
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal -m "not integration" --cov --cov-report=term-missing $(PYTEST_ARGS)

docs: env ## the site of docs/ in build/site; links and anchors are checked
	@.ci/docs

docs-pages: env ## write the generated pages: configuration, metrics, log events
	@PYTHONPATH=. $(PY) .ci/pages.py

bench: env ## measure on a real Kafka and MariaDB beside the floor; BENCH="A --rows 3000000 --runs 5" chooses, BENCH=--help tells
	@PYTHONPATH=. $(PY) -m tests.bench.suite $(BENCH)

microbench: env ## µs a row of single stages, without servers
	@for script in tests/bench/*_bench.py; do echo "== $$script"; PYTHONPATH=. $(PY) "$$script" || exit 1; done

soak: env ## the long tests, on every server; then the daemon on a live feed for CYCLES windows: is its memory flat?
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal --soak $(PYTEST_ARGS)
	@PYTHONPATH=. $(PY) tests/bench/soak.py $(or $(CYCLES),3000)

chaos: env ## FAULTS faults from SEED (none begins after MINUTES), under a local master and on a cluster, on a DATABASE (mariadb, mysql) of its own; PROTOCOL=canal-json, simple, simple-avro
	@APPLIER_TEST_PROTOCOL=$(or $(PROTOCOL),open-protocol) PYTHONPATH=. $(PY) tests/chaos/chaos.py $(or $(FAULTS),40) $(or $(SEED),1) $(or $(MINUTES),0) $(or $(DATABASE),mariadb)

wheel: env ## build dist/: the sdist, and the wheel from it
	@rm -rf dist
	@$(PY) -m build --no-isolation >/dev/null
	@ls dist/*

check-wheel: wheel ## install the wheel into a fresh environment and look at it
	@.ci/check-wheel

release: env ## dist/: wheel, sdist, licences, SBOM, checksums, all tried (docs/releasing.md)
	@.ci/release $(RELEASE_ARGS)
image: ## build the applier's own image, applier:local, from Debian's and the package index
	@docker build -f docker/Dockerfile -t applier:local .

wheelhouse: env ## every package that the image consists of, for builds without a package index (build/wheelhouse)
	@rm -rf build/wheelhouse
	@$(PY) -m pip wheel -q -w build/wheelhouse . "hatchling>=1.25"
	@rm build/wheelhouse/cdc_applier-*.whl

images: ## build the test images where no registry is reachable (root, Docker, debootstrap, mvn)
	@docker/images/build

servers: ## a database and Kafka by hand, without Docker, until Ctrl-C (mariadbd or mysqld, java, mvn)
	@tests/rig/servers

clean: ## remove what was built and cached; .venv stays
	@rm -rf build dist demo spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache .coverage .coverage.* coverage.xml
	@find applier migrations tests -name __pycache__ -type d -prune -exec rm -rf {} +
