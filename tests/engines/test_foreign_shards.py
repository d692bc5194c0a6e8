"""Sharding without an engine: foreign tables, PL/Proxy, and routers that know a shard by the hash of the key."""

import re

import pytest

from sharding import Section, need, numbered

TWICE = "SELECT count(*) - count(DISTINCT id) FROM {}"
