# One obvious command a chore; CI calls the same ones. `work` (Go 1.25+) is every package of every module in go.work.
.DEFAULT_GOAL := help
MODULES = $(shell go list -m -f '{{.Dir}}')
FUZZTIME = 10s
PROFILE = short
ARGS = -seed 1
ONLY = no-owner-check,group-made-again-at-the-end
LEGS =
ONSERVER = . ./internal/conn ./internal/engine ./internal/lua ./internal/redistest ./internal/wire
CHECKS = test race flush lint alone modcheck size docs fuzz speed-guard servers-short chaos chaos-mutants
.PHONY: help speed speed-guard growth profile setup hooks vuln test race flush servers servers-short vet lint fmt tidy alone modcheck fuzz size docs model mutants real chaos chaos-mutants scale check

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n",$$1,$$2}' $(MAKEFILE_LIST)

setup: ## what tests need and a fresh Debian lacks: redis-server, chromium, PostgreSQL, and a C compiler for race
	scripts/setup cc

hooks: ## git runs scripts/hooks/pre-commit before each commit: gofmt, vet of what changed, size
	git config core.hooksPath scripts/hooks

test: ## every test of every module (scripts/test: installs redis-server when missing, needs no make)
	scripts/test

race: setup ## the same under the race detector
	GORACE=atexit_sleep_ms=20 scripts/test -race -timeout 20m

flush: setup ## the core's tests while every server forgets its scripts each 100 ms
	XSTREAMQ_SCRIPT_FLUSH=100ms go test -count=1 . ./internal/engine ./internal/lua

servers: setup ## the core on Redis 7, 8 and Valkey 8, each alone, as a cluster, behind a Sentinel; LEGS='redis-next valkey-next'
	scripts/servers $(LEGS)

servers-short: setup ## each server and each topology once, without the mutants
	scripts/servers redis8 valkey8 redis7-cluster valkey8-sentinel -- -skip Mutants $(ONSERVER)

vet: ## go vet over every module
	go vet work

bin/golangci-lint: tools/go.mod tools/go.sum # own module, outside go.work: its 200 requirements must not raise ours
	cd tools && GOWORK=off go build -o ../bin/ tool

lint: bin/golangci-lint vet ## go vet and golangci-lint, which knows no `work` pattern: one run a module
	@for d in $(MODULES); do (cd $$d && $(CURDIR)/bin/golangci-lint run ./...) || exit 1; done

fmt: bin/golangci-lint ## formats every module as lint wants it
	@for d in $(MODULES); do (cd $$d && $(CURDIR)/bin/golangci-lint fmt ./...) || exit 1; done

tidy: ## go mod tidy in every module (go.work does not help tidy: see scripts/mod.sh)
	scripts/mod.sh tidy

alone: ## each module by itself, outside the workspace: what its users get
	scripts/mod.sh alone vet ./...

modcheck: ## fails when a go.mod or go.sum is not tidy
	scripts/mod.sh check

vuln: ## govulncheck over every module; asks vuln.go.dev, so it is no part of check
	@for d in $(MODULES); do (cd $$d && go run golang.org/x/vuln/cmd/govulncheck@latest ./...) || exit 1; done

fuzz: ## every Fuzz function of every module for FUZZTIME (10s) each
	scripts/fuzz $(FUZZTIME)

size: ## lines of the core, by room; fails over what is allowed
	scripts/size

docs: setup ## writes docs/cli.md and the consoles of docs/operations.md anew; checks blocks, links and commands of every page
	go test -count=1 -run 'TestCLIPage|TestOperationsPage' ./cmd/xstreamq -update
	go test ./internal/doccheck/...

model: ## the lifecycle model's long run
	go run ./internal/model/cmd/model

mutants: ## each script with a rule taken out: the tests must catch every one
	go test -run 'Mutants|TestMemoryFull|TestScenarios' ./internal/lua ./internal/model/...

real: ## make real FILE=x.ndjson: a whole file of payloads through the CLI and a real redis-server
	scripts/real.sh "$(FILE)"

speed: setup ## the table of docs/performance.md, on a machine that does nothing else: NOTE='a sentence for the page'
	@command -v redis-benchmark >/dev/null || scripts/apt.sh redis-tools
	go run ./loadtest/cmd/speed -page docs/performance.md -note '$(NOTE)' $(SPEED)

speed-guard: setup ## a few ratios of it with wide margins
	@command -v redis-benchmark >/dev/null || scripts/apt.sh redis-tools
	go run ./loadtest/cmd/speed -guard -rounds 3 -messages 30000

growth: setup ## cost as work grows, table and docs/growth.svg: NOTE='a sentence for the page', GROWTH='-full' for a queue of 10,000,000
	go run ./loadtest/cmd/growth -page docs/performance.md -svg docs/growth.svg -note '$(NOTE)' $(GROWTH)

profile: setup ## flame graphs of publish and drain for docs/performance.md
	scripts/profile

chaos: setup ## loadtest's trials: PROFILE=short (go run ./loadtest/cmd/chaos -list), ARGS='-seed 7'
	go run ./loadtest/cmd/chaos -profile $(PROFILE) $(ARGS)

scale: setup ## a million entries, 100,000 dead letters, 200 groups: Admin and every page held to their bounds; SCALE='-part 10'
	go run ./loadtest/cmd/scale $(SCALE)

chaos-mutants: setup ## trials of workers with a rule taken out, which must be noticed: ONLY= for all
	go run ./loadtest/cmd/mutants -only '$(ONLY)'

check: ## everything .ci/run runs, with the time of each
	@for c in $(CHECKS); do began=$$(date +%s); echo "== $$c"; $(MAKE) --no-print-directory $$c || exit 1; \
		echo "== $$c: $$(($$(date +%s) - began)) s"; done
