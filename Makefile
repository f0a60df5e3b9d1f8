# liqonet: build, check, test and show. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# VERSION and IMAGE_REPOSITORY are set for releases only. Other builds call themselves "dev", and have no image that
# liqoctl would take for granted: a name in the source would be that of whoever registers it. IMAGE_REPOSITORY is the
# publisher's, such as registry.example/liqonet; the release's image is there, by its version.
VERSION ?=
IMAGE_REPOSITORY ?=

# The image is the static binary and nothing else. Without VCS stamps, a commit that changes no code changes no
# binary, and so no image in a cluster. Tests have the flags of the build: else each package is compiled for either.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath -buildvcs=%,$(GOFLAGS)) -trimpath -buildvcs=false)
GO_BUILD := go build

# golangci-lint has the checks of go vet, and more, of the tests with build tags, too.
GO_TEST := go test -vet=off
LDFLAGS := -s -w $(if $(VERSION),-X liqonet.io/liqonet/internal/buildinfo.version=$(VERSION)) \
	$(if $(IMAGE_REPOSITORY),-X liqonet.io/liqonet/internal/buildinfo.repository=$(IMAGE_REPOSITORY))

# Tools are built from their Go modules, once a version, outside the tree.
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/liqonet-tools
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint

# Tests of these packages, and of the module bench, change kernel state in namespaces of their own: they need root.
KERNEL_PACKAGES := ./netops ./internal/helper ./internal/helper/node ./netops/...

# How many tests of one such package run in parallel. They wait more than they compute. A guest has one processor: what is
# timed or captured runs there one at a time.
PARALLEL := -parallel 6

# Builds and tests share the lock of the machine. A measurement has it alone.
SHARED := $(CURDIR)/.ci/machine shared
ALONE := $(CURDIR)/.ci/machine alone

# Each suite prints its wall time: the figures of docs/contributing/testing.md.
timed = TIMEFORMAT='suite $(1): %0R s'; time $(SHARED)

# How long the tests of a package may take. In a guest some take six minutes, of the ten that go test allows by default.
LONGEST := -timeout 40m

##@ Build

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: lab ## Build bin/liqoctl, and bin/lab for tests and the demo
	$(SHARED) $(GO_BUILD) -ldflags '$(LDFLAGS)' -o bin/liqoctl ./cmd/liqoctl

.PHONY: lab
lab: # bin/lab alone: what ends a demo must not depend on the rest
	cd lab && $(GO_BUILD) -o ../bin/lab ./cmd/lab

.PHONY: generate
generate: ## Write what is generated: docs/cli, the table of rights, pictures, golden files
	go test $(GOLDEN_PACKAGES) -update
	cd bench && go test ./report -update

# Packages whose tests take -update, that of internal/testbed/golden.
GOLDEN_PACKAGES = $(shell grep -rl --include='*_test.go' 'internal/testbed/golden"' . | grep -v -e '^./lab/' -e '^./bench/' | xargs -rn1 dirname | sort -u)

.PHONY: completions
completions: # scripts for bash, zsh and fish, in bin/completions
	mkdir -p bin/completions
	for shell in bash zsh fish; do go run ./cmd/liqoctl completion $$shell > bin/completions/liqoctl.$$shell; done

.PHONY: manuals
manuals: # manual pages, in bin/man
	go run ./commands/gen bin/man

.PHONY: release
release: ## Publish the release of the tag at HEAD, and its image in IMAGE_REPOSITORY; needs goreleaser and syft
	@[[ -n "$(IMAGE_REPOSITORY)" ]] || { echo "make release IMAGE_REPOSITORY=REGISTRY/NAME: where the image is published" >&2; exit 2; }
	IMAGE_REPOSITORY=$(IMAGE_REPOSITORY) goreleaser release --clean
	go run ./cmd/liqoctl image push $(IMAGE_REPOSITORY):$$(git describe --tags --exact-match) \
		--binary dist/liqoctl_linux_amd64_v1/liqoctl --binary dist/liqoctl_linux_arm64_v8.0/liqoctl

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist

##@ Test

.PHONY: check
check: build lint unit ## Build, lint, and run the tests that need no root (goldens and docs/cli included)

# The short form of a test, in `make test`, is some of its parts; the rest is for `make test-long`. In guests, whose kernel is slow,
# the short form is what depends on Geneve or on WireGuard in the kernel; this machine's kernel runs the others.
LONG_PATHS := TestFaultsAreShown/(2_%|large|the_overlay_of_the_peer|the_helper|hangs|power)
LONG_PATHS := $(LONG_PATHS)|TestGatewayFaults/(frozen|from_the_peer)|TestPartitions/(a_gateway_from|half_of_the_nodes_from_what|.*_for_minutes)|TestLossIsNotDeath/queue
LONG_PATHS := $(LONG_PATHS)|TestPathSizes/reported|TestManyPeers|TestEveryPath|TestWeather|TestFloods/(over|1400|64_bytes)|TestIdle
LONG_PATHS := $(LONG_PATHS)|TestDetoursAreShown/(port|type|IPsec|smaller|prohibit|unreachable)
GUEST_PATHS := TestTwoClusters|TestWebSocket|TestNothingInTheClear|TestStandbyGateways|TestPathSizes/silent|TestRepair/gateway/tunnel|TestUnreachableGateway
GUEST_BENCH := TestWeather
GUEST_KERNEL_PACKAGES := ./netops/kernel ./netops/tunnel/wireguard ./netops/tunnel/websocket
GUEST_KERNEL := TestPods\b|TestForgedOverlay\b|TestUnderlaySizes|TestNarrowHops|TestMarksOfOuterPackets|TestGatewayAddresses
GUEST_KERNEL := $(GUEST_KERNEL)|TestForgedProbe|TestInnerIPv6|TestApply\b|TestRemoteEndMoves|TestManyRemoteEnds|TestOtherMode|TestOverlaySockets
GUEST_KERNEL := $(GUEST_KERNEL)|TestDesiredStates|TestGroupChangesUnderTraffic|TestUnexpectedPacketsInTunnel/.*/WireGuard
GUEST_KERNEL := $(GUEST_KERNEL)|TestRenew|TestSwitch|TestCarried|TestForwarding|TestTunnel|TestOnlyAllowed|TestCloseAndOpen|TestAuto|TestOpen
LONG_LABS := TestLab\b|TestFaults|TestPlugins|TestStyles

.PHONY: test test-long
test: export SHORT_PATHS := -skip=$(LONG_PATHS)
test: export SHORT_LABS := -short -skip=$(LONG_LABS)
test: export SHORT_GUEST_PATHS := --run=$(GUEST_PATHS)
test: export SHORT_GUEST_BENCH := --run=$(GUEST_BENCH)
test: export SHORT_GUEST_KERNEL := --run=$(GUEST_KERNEL)
test: export SHORT_GUEST_KERNEL_PACKAGES := $(GUEST_KERNEL_PACKAGES)
test: ## Run the tests: check, those of the kernel, and real clusters, the long ones in a short form; needs root
test-long: ## Run all parts of all tests: more than half an hour; needs root
test test-long: deps build lint
	@echo "unit tests, and those of this machine's kernel; some minutes, then the output of each"
	$(MAKE) --no-print-directory --jobs 3 --output-sync=target paths kernel unit-beside
	@echo "on guests' kernels: Geneve and kernel WireGuard; some minutes, then the output of both"
	bin/lab guest build
	$(call timed,guests) $(MAKE) --no-print-directory --jobs 2 --output-sync=target guest-path guest-kernel
	cd lab; $(call timed,labs) $(GO_TEST) -timeout 90m $${SHORT_LABS:-} ./...

# Paths and kernel wait more than they compute. Unit tests, which only compute, and then the tests of the benchmarks, which
# flood, get what processor time is left, so that they delay nothing that is timed.
.PHONY: paths kernel unit-beside bench-tests
unit-beside:
	nice -n 19 $(MAKE) --no-print-directory unit
	nice -n 19 $(MAKE) --no-print-directory bench-tests

paths:
	cd bench; $(call timed,paths) $(GO_TEST) $(LONGEST) $(PARALLEL) "$${SHORT_PATHS:--skip=}" ./pathtest

bench-tests:
	cd bench; $(call timed,bench) $(GO_TEST) $(LONGEST) -p 1 "$${SHORT_PATHS:--skip=}" $$(go list ./... | grep -v /pathtest)

kernel:
	$(call timed,kernel) $(GO_TEST) $(LONGEST) $(PARALLEL) $(KERNEL_PACKAGES)

# A guest has one processor: one guest runs the tests of the path, another one those of the kernel. What passed, and of which
# nothing has changed since, is not run again, as by go test on this machine's kernel; CI sets GUESTS=--again.
GUESTS ?=
.PHONY: guest-path guest-kernel
guest-path:
	cd bench && ../bin/lab guest test $(GUESTS) "$${SHORT_GUEST_PATHS:---run=}" ./pathtest -- $(LONGEST) -short -p 1

guest-kernel:
	cd bench && ../bin/lab guest test $(GUESTS) $${SHORT_GUEST_BENCH:-./load ./path ./report} . -- $(LONGEST) $${SHORT_GUEST_BENCH:+-short} -p 1
	bin/lab guest test $(GUESTS) "$${SHORT_GUEST_KERNEL:---run=}" $${SHORT_GUEST_KERNEL_PACKAGES:-./netops ./netops/...} -- $(LONGEST) -short -p 1 $(PARALLEL)
	[[ "$${SHORT_GUEST_KERNEL:-}" ]] || bin/lab guest test $(GUESTS) ./internal/helper ./internal/helper/node -- $(LONGEST) -short
	bin/lab guest test $(GUESTS) --virtual-time --run Timers ./netops/tunnel/wireguard

.PHONY: bench
bench: deps lab ## Measure the path against a baseline, on this kernel and in a guest: 3 minutes; needs root
	cd bench && $(GO_BUILD) -o ../bin/bench .
	$(ALONE) bin/bench -guest bin/lab

.PHONY: weather
weather: deps lab ## Compare the path with WireGuard alone on lossy links, in a guest whose clock is virtual: half an hour; needs root
	cd bench && $(GO_BUILD) -o ../bin/bench .
	bin/lab guest run --virtual-time -- bin/bench weather -overlay geneve -wireguard kernel

.PHONY: scale
scale: deps ## Measure gateways, connect and API servers of clusters of 10, 100 and 1,000 nodes: 20 minutes; needs root
	cd bench && $(GO_BUILD) -o ../bin/bench .
	$(ALONE) bin/bench scale
	cd lab && LIQONET_CROWDS=10,100,1000 $(ALONE) go test -timeout 60m -run TestControlPlanes/TestLabCrowd -v ./e2e

.PHONY: floods
floods: deps ## Flood gateways by one pod, and measure their memory and what is left for others: 11 minutes; needs root
	cd bench && $(GO_BUILD) -o ../bin/bench .
	$(ALONE) bin/bench floods
	$(ALONE) bin/bench floods -quota 0.2
	$(ALONE) bin/bench floods -delay 30ms -only "64 TCP"

.PHONY: faults
faults: deps build ## Measure what faults do to a peering of GATEWAYS (2) a side, RUNS (10) of each: hours, continued after an interruption; needs root
	cd lab && $(GO_BUILD) -o ../bin/faults ./cmd/faults
	$(if $(LAB),,$(ALONE)) bin/faults -page docs/contributing/faults.md $(if $(GATEWAYS),-gateways $(GATEWAYS)) $(if $(RUNS),-runs $(RUNS)) $(if $(ONLY),-only $(ONLY)) $(if $(LAB),-lab $(LAB))
	go test . -run TestPictures -update

.PHONY: chaos
chaos: deps build ## Cause random faults of a peering of three gateways a side for FOR (30m), by SEED; needs root
	cd lab && $(GO_BUILD) -o ../bin/chaos ./cmd/chaos
	$(ALONE) bin/chaos -page docs/contributing/faults.md $(if $(FOR),-for $(FOR)) $(if $(SEED),-seed $(SEED))

.PHONY: test-matrix
test-matrix: deps build ## Connect clusters of every style, disturb connect and disconnect at every point; needs root
	cd lab && LIQONET_TEST_MATRIX=yes go test -timeout 60m -run 'TestStyles|TestControlPlanes' -v ./e2e

.PHONY: test-plugins
test-plugins: deps build ## Connect clusters that run flannel and Cilium, in every mode, and upgrade these: compiles two releases of Cilium once; needs root
	cd lab && LIQONET_TEST_PLUGINS=yes go test -timeout 120m -run TestPlugins -v ./e2e

.PHONY: test-tunnels
test-tunnels: deps build ## Connect clusters between which UDP does not get through: Ingress, proxy, load balancers of TCP, ten times each way; needs root
	cd lab && go test -timeout 60m -run 'TestTunnels|TestCrossingRules' -v ./e2e

# Unit tests have small heaps and allocate much: by default, a sixth of their processor time is garbage collection.
FEW_COLLECTIONS := GOGC=400

.PHONY: unit
unit:
	GOOS=darwin GOARCH=arm64 go list -export ./cmd/liqoctl >/dev/null # compiles it, and links nothing
	$(call timed,unit) env $(FEW_COLLECTIONS) $(GO_TEST) $(LONGEST) $(filter-out $(shell go list $(KERNEL_PACKAGES)),$(shell go list ./...))

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint over all modules, whose go.mod must be tidy
	@for module in . lab bench; do (cd $$module; go mod tidy -diff || { echo "$$module/go.mod is not tidy: go mod tidy" >&2; exit 1; }); done
	$(call timed,lint) $(GOLANGCI_LINT) run ./...
	cd lab && $(GOLANGCI_LINT) run ./...
	cd bench && $(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	@echo "building golangci-lint $(GOLANGCI_LINT_VERSION): some minutes, once"
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

.PHONY: deps
deps: ## Install the Debian packages that tests and demo need, where they are missing
	@missing=(); \
	for need in nft:nftables iptables:iptables ip:iproute2 ping:iputils-ping sysctl:procps nsenter:util-linux runc:runc; do \
		PATH=$$PATH:/usr/sbin:/sbin command -v "$${need%%:*}" >/dev/null || missing+=("$${need##*:}"); \
	done; \
	if (($${#missing[@]})); then \
		apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$${missing[@]}"; \
	fi

##@ Show

.PHONY: demo
demo: deps build ## Start two real clusters with the same pod CIDR, connect them, fetch a page both ways; needs root
	bin/lab demo --liqoctl bin/liqoctl

.PHONY: demo-down
demo-down: lab ## Remove everything that the demo started
	bin/lab down
