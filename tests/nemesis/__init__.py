"""The nemesis of flake: faults of all kinds at once, on servers whose clocks are set, under load of every kind.

`plan` draws from a seed what happens, `faults` does it to the servers of `cluster`, `workload` makes IDs meanwhile, and `oracle`
keeps every ID that was returned. Of an ID that was made twice, `exemptions` says whether the guarantee covers it.
"""

import os

# Faults, ways of making IDs, and kinds of IDs that are left out, to look behind a fault that is known.
WITHOUT = set(os.environ.get("FLAKE_NEMESIS_WITHOUT", "").split(","))
# The servers of all plans, where they are not drawn.
SERVERS = os.environ.get("FLAKE_NEMESIS_SERVERS")
# Seconds that a server has for what nothing but a busy machine may delay.
LONG = 300
