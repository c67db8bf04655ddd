# The commands of the project. `make demo` and `make test` install what they need.

CARGO ?= cargo
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help demo test regress bench build

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

demo: ## run the main job on real documents, against a private Postgres
	@scripts/setup.sh demo
	@scripts/documents.sh
	$(CARGO) build --locked --release -p toastrack-cli
	target/release/toastrack demo --from .cache/documents $(DEMO_FLAGS)

test: ## run every check and test; the last line says how many passed
	@scripts/test.sh

regress: ## PostgreSQL's own regression suite, straight and through Toastrack
	@scripts/setup.sh demo
	$(CARGO) build --locked -p toastrack-cli
	scripts/regress.sh

bench: ## direct, through Toastrack and the bound, side by side; flags in BENCH_FLAGS
	@scripts/setup.sh demo
	$(CARGO) build --locked --release -p toastrack-cli -p toastrack-bench
	target/release/toastrack-bench $(BENCH_FLAGS)

build: ## build the release binary, target/release/toastrack
	@scripts/setup.sh demo
	$(CARGO) build --locked --release -p toastrack-cli
