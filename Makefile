# Everything that is done to this repository by hand or by CI is a target here.
# `make check` is CI, word for word; `make quick` is for before each commit.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO     ?= go
# Tools live in tools.mod, so that go.mod lists what ships; templ alone stands
# in go.mod, at the version of its runtime.
TOOL   := $(GO) tool -modfile=tools.mod
# The race detector watches our code; in the SQLite driver, which is C made Go,
# it costs a factor of 16 and finds nothing of ours.
RACE   := -race -gcflags='modernc.org/sqlite/lib=-race=false' -gcflags='modernc.org/libc=-race=false'
# Counts tests, fails on a skipped one and when none ran; see scripts/gotest.
GOTEST := $(GO) run ./scripts/gotest $(if $(GOTEST_TALLY),-tally '$(GOTEST_TALLY)')
# Once the conformance suite exists, a run must have seen both databases.
BOTH   := $(if $(wildcard store/storetest),-want '/sqlite' -want '/postgres')
# What `make dev` starts again for: templ's own pattern, and the assets.
WATCHED := (.+\.go$$)|(.+\.templ$$)|(.+_templ\.txt$$)|(static/.+\.(css|js|svg)$$)
# Once there are browser tests, a run must have run them.
PAGES  := $(if $(wildcard e2e/browser),-want 'e2e/browser[.]')
GOFILES = find . -name '*.go' -not -name '*_templ.go' -not -path '*/node_modules/*' -print0 | xargs -0 -r

# need stops a target whose package is not there, lest it seem to have passed.
need = test -d $(1) || { echo "make $@: there is no $(1)/ yet, so nothing was run" >&2; exit 1; }

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## fetch what developing needs: modules, tools, node_modules, PostgreSQL, a C compiler for -race
	@$(GO) version
	$(GO) mod download
	$(GO) mod download -modfile=tools.mod
	@$(MAKE) cc
	scripts/npm
	scripts/postgres -- true

.PHONY: cc
cc:
	@command -v "$${CC:-gcc}" >/dev/null || scripts/apt-install gcc libc6-dev

.PHONY: dev
dev: ## serve, and start again at each change of a page, its style or a script; all components at /dev/components
	@scripts/npm run --silent pages
	@node_modules/.bin/tailwindcss --input views/app.css --output static/app.css --watch=always & css=$$!; trap 'kill $$css' EXIT; \
	$(GO) tool templ generate --watch --watch-pattern='$(WATCHED)' --proxy=http://127.0.0.1:8080 --cmd='$(GO) run -tags dev .'

.PHONY: generate
generate: ## write the generated files: Go of templates, stylesheet, vendored scripts
	$(GO) tool templ generate # from the root only: it writes paths into its files
	@scripts/npm run --silent pages

GENERATED := '*_templ.go' static/app.css static/vendor

.PHONY: generated
generated: generate ## fail if a generated file is not current, not committed, or left over
	@git diff --exit-code -- $(GENERATED)
	@new=$$(git ls-files --others --exclude-standard -- $(GENERATED)); \
	[[ -z $$new ]] || { printf 'generated, but not committed:\n%s\n' "$$new" >&2; exit 1; }
	@git ls-files -- '*_templ.go' | while read -r f; do \
	[[ -e $${f%_templ.go}.templ ]] || { echo "left over: $$f has no .templ file" >&2; exit 1; }; done

.PHONY: fmt
fmt: ## format the sources
	@$(GOFILES) $(TOOL) goimports -local holdfast -w
	@$(GOFILES) $(TOOL) gofumpt -w

.PHONY: fmt-check
fmt-check: ## fail if a source is not formatted
	@bad=$$({ $(GOFILES) $(TOOL) goimports -local holdfast -l; $(GOFILES) $(TOOL) gofumpt -l; } | sed 's|^\./||' | sort -u); \
	[[ -z $$bad ]] || { printf 'not formatted (make fmt):\n%s\n' "$$bad" >&2; exit 1; }

.PHONY: vet
vet: ## go vet, also of what only the crash suite or development compiles
	$(GO) vet ./...
	$(GO) vet -tags crashpoints ./...
	$(GO) vet -tags evidence ./e2e/browser
	$(GO) vet -tags agents ./e2e
	$(GO) vet -tags dev ./...

.PHONY: lint
lint: ## golangci-lint with the rules of .golangci.yml
	$(TOOL) golangci-lint run

.PHONY: test
test: ## all tests on SQLite and PostgreSQL, and in Chromium (installed by apt if missing)
	scripts/chromium -- scripts/postgres -- $(GOTEST) $(BOTH) $(PAGES) -- -count=1 -timeout=20m ./...

.PHONY: race
race: cc ## all but those in Chromium under the race detector: of the pages it watches what serves them
	@all=$$($(GO) list ./... | grep -v '/e2e/browser$$'); \
	CGO_ENABLED=1 scripts/postgres -- $(GOTEST) $(BOTH) -- $(RACE) -count=1 -timeout=60m $$all

.PHONY: components
components: ## the page of all components, which only builds for development have
	$(GOTEST) -- -count=1 -tags dev -run TestDevComponents ./handlers

.PHONY: browser
browser: ## the pages in Chromium alone
	@$(call need,e2e/browser)
	scripts/chromium -- scripts/postgres -- $(GOTEST) -want sqlite -want postgres $(PAGES) -- -count=1 -timeout=30m ./e2e/browser

.PHONY: test-agents
test-agents: ## the product with opencode and Claude Code from npm, against a model of the tests (Linux on x64)
	@command -v git >/dev/null || scripts/apt-install git # opencode needs it
	scripts/npm -C e2e/agents
	scripts/postgres -- $(GOTEST) -want claude/sqlite -want claude/postgres -want opencode/sqlite -want opencode/postgres -- -count=1 -timeout=20m -tags agents -run TestReal ./e2e

.PHONY: quick
quick: ## vet and unit tests on SQLite alone, in at most 3 minutes: before each commit
	$(GO) vet ./...
	@units=$$($(GO) list ./... | grep -Ev '^holdfast/(e2e|bench)(/|$$)'); \
	env -u TEST_POSTGRES_URL $(GOTEST) -- $$units

.PHONY: crash
crash: ## kill -9 the real binary at each labelled point, on both databases; prints a table
	@$(call need,e2e)
	scripts/postgres -- $(GOTEST) -show -want sqlite -want postgres -- -count=1 -timeout=30m -tags crashpoints -run TestCrash ./e2e/...

.PHONY: mutants
mutants: ## break ten rules on purpose, one at a time, and see a test fail (make soak: all)
	@$(call need,e2e/mutants)
	$(GOTEST) -show -- -count=1 -timeout=30m -tags crashpoints -run TestMutants ./e2e/mutants

.PHONY: soak
soak: ## the long tests (TestSoak…, all mutants), for an hour or more; never in CI
	@$(call need,e2e)
	scripts/postgres -- $(GOTEST) -show -- -count=1 -timeout=180m -tags 'crashpoints soak' -run TestSoak ./e2e/...

.PHONY: bench
bench: ## measure against the bare loops in the same run; prints tables of ratios
	@$(call need,bench)
	scripts/postgres -- $(GO) run ./bench

# DIR is where, LARGE=1 adds two large sessions.
.PHONY: evidence
evidence: ## take the pictures of docs/evidence.md anew
	@mkdir -p docs/images
	scripts/npm -C e2e/agents
	HOLDFAST_EVIDENCE='$(CURDIR)/docs/images' scripts/chromium -- $(GOTEST) -- -count=1 -timeout=10m -tags evidence -run TestEvidence ./e2e/browser

.PHONY: seed
seed: DIR ?= ./seed-data
seed: ## fill DIR (./seed-data) with a session in every state, and say how to look at them
	@$(GO) run ./scripts/seed $(if $(LARGE),-large) '$(DIR)'

.PHONY: build
build: ## the binary to ship: ./holdfast
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o holdfast .

.PHONY: darwin
darwin: ## fail if it does not compile for macOS
	GOOS=darwin $(GO) build -buildvcs=false ./...

.PHONY: check
check: ## what CI does, word for word, with the time of each stage
	@scripts/check
