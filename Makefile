# weir: build, demo, test. "make help" lists the targets.

export CGO_ENABLED := 0
# Each package is compiled once for all parts of the gate, and not again in another folder.
export GOFLAGS += -trimpath
GO ?= go
VERSION := $(shell sed -n 's/^## \[\{0,1\}\([0-9][^] ]*\).*/\1/p' CHANGELOG.md | head -n 1)
OUT ?= .
LDFLAGS := -s -w -X main.version=$(VERSION)

# Debian packages that the tests need: emulators and file systems for the lab's
# guests, and tools that tests call. The kernels and root images are fetched by the
# lab itself, from the same mirror that apt uses.
TEST_PACKAGES := qemu-system-x86 busybox-static kmod cpio xz-utils zstd mmdebstrap \
	erofs-utils e2fsprogs xfsprogs btrfs-progs lvm2 dmsetup fdisk util-linux quota \
	cgroup-tools procps sqlite3 git

LAB_FLAGS := $(if $(KERNEL),-kernel $(KERNEL)) $(if $(MODE),-mode $(MODE)) $(if $(LANE),-lane $(LANE)) $(if $(RUN),-run '$(RUN)')

# Each part of the gate notes how long it took, in out/parts.
PART := ./tools/part

.PHONY: all build image kube kube-base install uninstall demo test quick unit lint lab lab-all kills loops races escapes sets engines soak quotas watching bench mutants fuzz man bpf check-bpf deps clean help

all: build

build: ## build ./weir and its daemon ./weird, two static binaries
	$(GO) build -ldflags '$(LDFLAGS)' -o '$(OUT)/' ./cmd/weir ./cmd/weird

# Where distributions look for them: binaries, manual pages, and each shell's completion.
PREFIX ?= /usr/local
BINDIR = $(DESTDIR)$(PREFIX)/bin
MANDIR = $(DESTDIR)$(PREFIX)/share/man/man1
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

install: build ## install weir, weird, manual pages and shell completion below PREFIX (/usr/local), or in DESTDIR for a package
	install -d '$(BINDIR)' '$(MANDIR)' '$(BASHDIR)' '$(ZSHDIR)' '$(FISHDIR)'
	install -m 755 '$(OUT)/weir' '$(OUT)/weird' '$(BINDIR)'
	install -m 644 docs/man/*.1 '$(MANDIR)'
	@for program in weir weird; do \
		'$(OUT)'/$$program completion bash >"$(BASHDIR)/$$program" && \
		'$(OUT)'/$$program completion zsh >"$(ZSHDIR)/_$$program" && \
		'$(OUT)'/$$program completion fish >"$(FISHDIR)/$$program.fish" && \
		chmod 644 "$(BASHDIR)/$$program" "$(ZSHDIR)/_$$program" "$(FISHDIR)/$$program.fish" || exit 1; \
	done

uninstall: ## remove what install installed
	cd '$(MANDIR)' && rm -f weir.1 weird.1 weir-*.1 weird-*.1
	cd '$(BINDIR)' && rm -f weir weird
	rm -f '$(BASHDIR)/weir' '$(BASHDIR)/weird' '$(ZSHDIR)/_weir' '$(ZSHDIR)/_weird' '$(FISHDIR)/weir.fish' '$(FISHDIR)/weird.fish'

# For a registry, a node's containerd (ctr -n k8s.io images import), podman load or skopeo.
image: build ## write out/weir.tar, a container image of the two binaries, without a registry or a daemon
	@mkdir -p out
	$(GO) run ./tools/image -version '$(VERSION)' -from '$(OUT)' -to out/weir.tar

kube: ## test the Helm chart and the manifest of contrib/kubernetes with Helm and kustomize, which Go builds
	cd tools/kube && $(GO) vet ./... && $(GO) test ./...

kube-base: ## make contrib/kubernetes/base from the chart
	cd tools/kube && $(GO) test -run TestBase -update ./...

demo: build ## show what a limit does, on a scratch disk (needs root)
	./weir demo

test: deps ## all tests: measured tests in real kernels, and unit tests in the time that guests leave
	@GO=$(GO) $(PART) lab $(GO) run ./lab/cmd/lab $(LAB_FLAGS) -beside '$(PART) unit ./tools/unit'

quick: ## format, vet, lint and unit tests of what has changed since BASE (the branch's start), and of what imports it
	./tools/quick $(BASE)

unit: ## the fast tests, with the coverage of each package; as root with a floor for some
	@GO=$(GO) $(PART) unit ./tools/unit

lint: ## golangci-lint with .golangci.yml
	@$(PART) lint $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) run ./...
LINT_VERSION := v2.15.0

lab: ## tests in real kernels: KERNEL=6.1 MODE=v1|v2|hybrid|hybrid-v2|split LANE=uml|qemu|full|full-qemu|native RUN=REGEXP choose some
	@$(PART) lab $(GO) run ./lab/cmd/lab $(LAB_FLAGS)

lab-all: ## the same on every kernel
	@$(MAKE) -s deps TEST_PACKAGES="$(TEST_PACKAGES) prometheus"
	$(GO) run ./lab/cmd/lab -all

kills: build ## kill weir 100 times in each verb, at random moments
	WEIR_KILLS=100 $(GO) run ./lab/cmd/lab -kernel 6.1 -lane uml -timeout 20m -run 'TestKill'
	WEIR_KILLS=1000 $(GO) run ./lab/cmd/lab -lane native -timeout 20m -run 'TestKillsOfThePacer|TestKills$$'

.PHONY: agent
agent: ## kill weird 1,000 times, measure 1,000 births of containers on v1 and v2, and what 2,000 cost
	WEIR_KILLS=1000 WEIR_BIRTHS=1000 $(GO) run ./lab/cmd/lab -lane native -timeout 40m -run 'TestAgentIsKilled|TestAgentBirths'
	WEIR_KILLS=1000 WEIR_BIRTHS=1000 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane uml -timeout 40m -run 'TestAgentIsKilled|TestAgentBirths'
	WEIR_GROUPS=2000 $(GO) run ./lab/cmd/lab -lane native -timeout 20m -run TestAgentsCost

.PHONY: births
births: ## start and end 20,000 containers, 20 a second: weird's memory, descriptors and watches do not grow
	WEIR_SOAK=20000 $(GO) run ./lab/cmd/lab -lane native -timeout 40m -run TestAgentSoak

loops: build ## end, stop, pause and join paced groups a thousand times, by newcomers too, and end pacers that have lent
	WEIR_SIGNALS=100 WEIR_JOINS=1000 WEIR_STOPS=140 $(GO) run ./lab/cmd/lab -lane native -all -timeout 30m -run '$(LOOPS)'
	WEIR_KILLS=100 $(GO) run ./lab/cmd/lab -lane native -timeout 20m -run TestALoanIsRepaid
	WEIR_KILLS=30 $(GO) run ./lab/cmd/lab -lane native -timeout 20m -run TestThePacerWithoutMemory
	for mode in v1 v2; do WEIR_PAUSES=1000 WEIR_JOINS=1000 WEIR_STOPS=140 $(GO) run ./lab/cmd/lab -kernel newest -mode $$mode -lane uml -timeout 60m -run 'TestOwnersFreezer|TestJoins|TestStopsOf|NewcomersArePaced' || exit 1; done
LOOPS := TestSignalsReach|TestASignalledWriter|TestJoins|TestStopsOf|NewcomersArePaced|TestTheFirstExample|PaidOnce

engines: ## start a thousand processes in paced containers of Docker and Podman, and pause each a thousand times, on v1 and v2
	for mode in v1 v2; do WEIR_EXECS=1000 WEIR_PAUSES=1000 $(GO) run ./lab/cmd/lab -kernel newest -mode $$mode -lane full -timeout 120m -run '(TestDocker|TestPodman)/manners' || exit 1; done

races: ## 1,000 rounds of two changes of a limit at once: two sets, set and clear, set and run, set and the kernel's file; and 100 sets
	WEIR_RACES=1000 $(GO) run ./lab/cmd/lab -lane native -timeout 20m -run TestTwoAtOnceOften
	WEIR_RACES=1000 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane uml -timeout 30m -run TestTwoAtOnceOften
	WEIR_RACES=1000 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane full -timeout 60m -run TestTwoAtOnceOnAUnit
	WEIR_ORDERS=4 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane full -timeout 30m -run 'TestNamesOfOneDisk|TestOrdersOfNames'

sets: ## set a limit 100 times on a running writer, direct, synchronous and buffered, on v1 and v2, with systemd and without
	for kernel in 6.1 newest; do for mode in v1 v2; do WEIR_SETS=100 $(GO) run ./lab/cmd/lab -kernel $$kernel -mode $$mode -lane uml -timeout 90m -run TestSetOnARunningWriter || exit 1; done; done
	for mode in v1 v2; do WEIR_SETS=100 $(GO) run ./lab/cmd/lab -mode $$mode -lane full -timeout 90m -run TestSetOnARunningWriter || exit 1; done

escapes: ## what escapes a limit on v2: with BPF in an emulated guest, and without it on three kernels
	$(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane qemu -timeout 60m -run '$(ESCAPES)'
	for kernel in 6.1 6.12 newest; do $(GO) run ./lab/cmd/lab -kernel $$kernel -mode v2 -lane uml -timeout 60m -run '$(ESCAPES)' || exit 1; done
ESCAPES := TestRunHolds|TestRunTells|TestRunSays|TestSetHoldsWhatEscapes|TestNothingEscapes|TestWatcher$$|TestEstimate|TestWhyEscapesPaced

soak: ## 200 proofs beside a busy processor, and five writers that little memory hangs
	WEIR_RUNS=200 $(GO) run ./lab/cmd/lab -lane native -timeout 60m -run TestSoakVerdicts
	WEIR_RUNS=200 WEIR_PAIRS=5 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane uml -timeout 60m -run 'TestSoak|TestWhySlowDrain$$'

quotas: ## a quota on a tree of a million files, beside xfs_quota
	WEIR_FILES=1000000 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane uml -memory 4096 -timeout 30m -run TestManyFiles
	@grep -h ' ratio ' out/lab/tests.log

# WEIR_CADVISOR=PATH measures a cAdvisor in the same run.
watching: ## what weir top and the metrics cost where 2,000 groups have limits, on this host
	WEIR_GROUPS=2000 $(GO) run ./lab/cmd/lab -lane native -timeout 10m -run TestCost$$
	@grep -h ' cost of ' out/lab/tests.log

.PHONY: page
page: ## the page of weird in headless Chromium, and screenshots of it in out/page
	@$(MAKE) -s deps TEST_PACKAGES="chromium-headless-shell fonts-dejavu-core"
	WEIR_BROWSER=required $(GO) test -count=1 -timeout 10m -v -run 'TestScreens|TestPageInABrowser' ./internal/ui/web ./cmd/weird

.PHONY: alerts
alerts: ## a real Prometheus scrapes weird in a guest with systemd: an alert fires when a limit lets a writer escape, and clears
	@$(MAKE) -s deps TEST_PACKAGES="$(TEST_PACKAGES) prometheus"
	for mode in v1 v2; do $(GO) run ./lab/cmd/lab -with prometheus -mode $$mode -lane full -timeout 20m -run 'TestAlerts$$' || exit 1; done

.PHONY: kubelet
kubelet: ## a real kubelet with static pods in a guest with systemd: started, changed, killed and booted, each pod is limited. Go builds kubelet, once: 8 minutes
	@$(MAKE) -s deps
	$(GO) run ./lab/cmd/lab -with kubelet -kernel newest -mode v2 -lane full -timeout 20m -run '^TestKubelet'
	@grep -h ' of its limit\| of [0-9]* (starved' out/lab/tests.log

.PHONY: containerd
containerd: ## pods of containerd 2.4 and 2.1 in a guest with systemd, and containerd that starts none without weir. Go builds them, once: 3 minutes
	@$(MAKE) -s deps
	for with in containerd containerd-2.1; do $(GO) run ./lab/cmd/lab -with $$with -kernel newest -mode v2 -lane full -run '^TestNRI' || exit 1; done

.PHONY: cluster
cluster: ## a cluster of one node in a guest with systemd: API server, etcd, controllers, scheduler, kubelet, and weir's chart installed by Helm. Go builds them, once: 16 minutes
	@$(MAKE) -s deps
	$(GO) run ./lab/cmd/lab -with cluster -kernel newest -mode v2 -lane full -timeout 30m -run '^TestCluster$$'
	@grep -h ' of [0-9]* (starved\| MiB$$\|in force ' out/lab/tests.log

bench: build ## whole commands against libcgroup's and fio, weir trace beside perf and strace, and the pacer against the kernel
	@$(MAKE) -s deps TEST_PACKAGES="cgroup-tools fio linux-perf strace"
	$(GO) run ./tools/bench
	$(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane uml -run TestWriteLatency
	@grep -h ' p50 ' out/lab/tests.log

.PHONY: recorded
recorded: ## kill the recorder of history 200 times, cut its power 200 times, on a modelled disk with a cache and on ext4 and XFS in a guest, and reset its guest 200 times
	WEIR_HISTORY_KILLS=200 WEIR_HISTORY_CUTS=200 $(GO) test -count=1 -timeout 20m -v -run 'TestKilled$$|TestPowerCut$$' ./internal/look/history
	WEIR_HISTORY_CUTS=200 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane uml -timeout 20m -run TestHistoryAfterAPowerCut
	WEIR_HISTORY_RESETS=200 $(GO) run ./lab/cmd/lab -kernel newest -mode v2 -lane uml -timeout 60m -run TestHistoryAfterAReset
	@grep -h ' resets, ' out/lab/tests.log

mutants: ## put faults into weir, one at a time, and see that tests see each: ONLY=REGEXP chooses some
	$(GO) run ./tools/mutants -run '$(ONLY)'

fuzz: ## every fuzz test for FUZZ_TIME, one after the other, and verbs on 4,000 machines made at random
	./tools/fuzz $(FUZZ_TIME)
	WEIR_VERBS=20000 $(GO) test -run '^TestVerbsOnRandomHosts$$' -timeout 2h -v ./cmd/weir
FUZZ_TIME ?= 30s

man: ## regenerate docs/man from the commands
	$(GO) run ./tools/man docs/man

.PHONY: findings
findings: ## regenerate docs/guide/findings.md from the rules of weir why
	$(GO) run ./tools/findings internal/look/why docs/guide/findings.md

# Besides clang it takes llvm-strip and libbpf's headers: apt-get install clang llvm libbpf-dev
bpf: ## regenerate the BPF objects (needs clang)
	cd internal/linux/inode/owners && GOPACKAGE=owners $(BPF2GO) owner ../../../../bpf/owner.bpf.c $(BPF_FLAGS)
	cd internal/act/escape/watcher && GOPACKAGE=watcher $(BPF2GO) escape ../../../../bpf/escape.bpf.c $(BPF_FLAGS)
	cd internal/linux/partial && GOPACKAGE=partial $(BPF2GO) partial ../../../bpf/partial.bpf.c $(BPF_FLAGS)
	cd internal/look/trace/tracer && GOPACKAGE=tracer $(BPF2GO) trace ../../../../bpf/trace.bpf.c $(BPF_FLAGS)
	cd bpf && sha256sum *.c *.h >SHA256SUMS
BPF2GO = $(GO) run github.com/cilium/ebpf/cmd/bpf2go -cc $(CLANG) -strip $(LLVM_STRIP) -target bpfel -no-global-types
BPF_FLAGS = -- -O2 -Wall -Werror -I/usr/include/$$(uname -m)-linux-gnu
CLANG ?= clang
LLVM_STRIP ?= llvm-strip

check-bpf: ## regenerate them with the compiler of those here, and compare
	@$(MAKE) -s deps TEST_PACKAGES="clang-14 llvm-14 libbpf-dev"
	$(MAKE) -s bpf CLANG=clang-14 LLVM_STRIP=llvm-strip-14
	git diff --exit-code --stat -- bpf '*_bpfel.go' '*_bpfel.o'

deps: ## install the Debian packages that the tests need
	@missing=$$(dpkg-query -W -f '$${db:Status-Status} $${Package}\n' $(TEST_PACKAGES) 2>&1 | sed '/^installed /d; s/^dpkg-query: no packages found matching //; t; s/^[^ ]* //'); \
	if [ -n "$$missing" ]; then \
		echo "installing:" $$missing; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi

clean: ## remove what was built
	rm -rf weir weird out

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 12
