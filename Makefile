# The Go tool is the build; these are the commands worth remembering.

.PHONY: test race bench peers ci check soak mutants

test: ## everything that must hold for a change
	go test ./...

race: ## the same under the race detector, where goroutines share state
	go test -race -short -timeout 60m ./db/... ./ledger/...

check: ## for every change: break it in every way that can be counted; meant to take ten minutes
	go run ./internal/check

soak: ## before a release: the same with the long numbers; meant to take ninety
	go run ./internal/check -soak

mutants: ## the tests of the tests: each mistake in the product is noticed
	go run ./internal/check -mutants

bench: ## settlements per second: batches of 64 against batches of one, and both engines
	go test -run '^$$' -bench "Settle|Engines" ./ledger

peers: ## beside what people would use instead: one table of ratios, in some minutes
	scripts/peers.sh

ci: ## what continuous integration runs
	.ci/run
