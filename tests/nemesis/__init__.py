"""The nemesis of flake: faults of all kinds at once, on servers whose clocks are set, under load of every kind.

`plan` draws the steps from a seed. `faults` carries them out on the servers of `cluster`, while the clients of `workload` make
IDs. `oracle` keeps every returned ID. If an ID is made twice, `exemptions` says whether the guarantee excludes that case.
"""

import os

# Names of faults, of ways of making IDs, and of kinds of IDs to leave out, so that a known fault does not hide others.
WITHOUT = set(os.environ.get("FLAKE_NEMESIS_WITHOUT", "").split(","))
# The servers of every plan, instead of those that the plan draws.
SERVERS = os.environ.get("FLAKE_NEMESIS_SERVERS")
# Seconds that a server has for something that only a busy machine can delay.
LONG = 300
