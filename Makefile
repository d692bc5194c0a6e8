# PG_CONFIG=/path/to/pg_config chooses the PostgreSQL, DESTDIR= a root for packagers.
export PG_CONFIG DESTDIR

.PHONY: all install uninstall run stop test test-core installcheck test-server lint clean

all: ## build the extension
	@scripts/build

install: all ## copy it to where PostgreSQL looks for it
	@scripts/install

uninstall: ## delete it there
	@scripts/install --remove

run: ## show the main job on a throwaway server
	@scripts/run

stop: ## end the server that `make run` left running
	@scripts/cluster remove /tmp/flake-demo-$$(id -un)

test: ## all tests, on throwaway servers
	@scripts/test all

test-core: ## tests of the core, without a server
	@scripts/test core

installcheck: ## SQL tests against the running server that PGHOST, PGPORT, PGUSER name
	@scripts/test installcheck

test-server: ## SQL tests and tests of behaviour on throwaway servers
	@scripts/test server

lint: ## formatting and warnings
	@scripts/lint

clean:
	@cargo clean
