# The commands of the project; CONTRIBUTING.md says when to use which.
# `verify` and what it runs never write to the source tree; `fix` may.

CARGO ?= cargo

.PHONY: run test clients bench fuzz lint verify fix

run: ## start the broker on its default ports, data in ./tanda-data
	$(CARGO) run --release -- serve

test: clients ## all tests; needs Rust, gcc with g++, make, Python 3 with venv, and Node.js with npm
	$(CARGO) test --workspace

CLIENTS := target/clients

clients: $(CLIENTS)/installed ## the clients of others that the tests drive, pinned, into target/clients

LAPIN := tests/clients/lapin

$(CLIENTS)/installed: tests/clients/requirements.txt tests/clients/amqplib/package-lock.json \
		$(LAPIN)/Cargo.toml $(LAPIN)/Cargo.lock $(LAPIN)/src/main.rs
	python3 -m venv $(CLIENTS)
	$(CLIENTS)/bin/pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt
	cp tests/clients/amqplib/package.json tests/clients/amqplib/package-lock.json $(CLIENTS)
	npm ci --silent --no-audit --no-fund --prefix $(CLIENTS)
	$(CARGO) build --quiet --locked --manifest-path $(LAPIN)/Cargo.toml --target-dir $(CLIENTS)/lapin
	touch $@

TARGET ?= session_input
SECONDS ?= 600

fuzz: ## one fuzz target for some time: make fuzz TARGET=frame_decode SECONDS=3600; needs nightly Rust and cargo-fuzz
	$(CARGO) run -q -p tanda-fuzz -- fuzz/seeds
	mkdir -p fuzz/found/$(TARGET) fuzz/corpus/$(TARGET)
	$(CARGO) +nightly fuzz run -O $(TARGET) fuzz/found/$(TARGET) fuzz/corpus/$(TARGET) fuzz/seeds/$(TARGET) -- \
		-max_total_time=$(SECONDS) -max_len=8192 -rss_limit_mb=1024 -timeout=20

bench: ## the workloads against a server started for the run
	$(CARGO) run --release -p tanda-bench

lint: ## format, clippy and documentation, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

verify: lint test ## what CI runs

fix: ## format, and apply the fixes that clippy is sure of
	$(CARGO) fmt --all
	$(CARGO) clippy --workspace --all-targets --fix --allow-dirty --allow-staged
