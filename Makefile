# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL, DESTDIR= a root for packagers.
export PG_CONFIG DESTDIR

.PHONY: all help setup install uninstall run stop test test-matrix test-engines test-clients soak mutants installcheck lint bench package package-test dist site test-site clean

all: ## build the extension; says what is missing and installs nothing
	@scripts/build

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r target does; do \
	    printf 'make %-14s %s\n' "$$target" "$$does"; done

setup: ## install what building and running lacks (Debian packages, the Rust that is named in rust-toolchain.toml)
	@scripts/setup

install: all ## copy it to where PostgreSQL looks for it
	@scripts/install

uninstall: ## delete it there
	@scripts/install --remove

run: ## set up, build, and show the main job on a throwaway server
	@scripts/run

stop: ## end the server that `make run` left running
	@scripts/cluster remove "$${FLAKE_DEMO:-/tmp/flake-demo-$$(id -un)}"

test: ## set up, build, and run all tests on throwaway servers
	@scripts/test all

test-matrix: ## all tests on PostgreSQL 15 to 19, getting what is missing (some minutes each, once)
	@scripts/test matrix

test-engines: ## Patroni, pg_auto_failover, copies and upgrades of servers, as people run them; says what it skips
	@scripts/test engines

test-clients: ## the examples of drivers, ORMs and their tools, and the table of docs/how-to/clients.md; says what it skips
	@scripts/test clients

soak: ## faults, load, plans, the simulator and failovers by engines, for some four hours
	@scripts/test soak

mutants: ## puts slips into a copy, one at a time, and shows which test notices
	@scripts/test mutants

installcheck: ## SQL tests against the running server that PGHOST, PGPORT, PGUSER name
	@scripts/test installcheck

bench: ## flake beside its alternatives, on throwaway servers; writes docs/explanation/benchmarks.md (about an hour)
	@scripts/bench

package: ## Debian packages and tarballs in target/dist, for each PostgreSQL that is installed, or FLAKE_PACKAGE_VERSIONS="15 17"
	@scripts/package

package-test: ## installs the packages of PostgreSQL 15 to 19 on clean machines, as root, and upgrades to them; builds twice
	@scripts/package-test

dist: ## the archive for PGXN in target/dist
	@scripts/package archive

site: ## the web pages in target/site/book/html: docs/ with search, a tutorial that runs in the browser, a reader of IDs
	@scripts/site

test-site: ## builds the web pages, and uses them in a browser
	@scripts/test site

lint: ## formatting and warnings
	@scripts/lint

clean: ## delete what was built
	@rm -rf target
