"""The counts of bench/duplicates.py that are certain: flake makes no ID twice, and Mastodon's function does."""

import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))


@pytest.mark.matrix
def test_duplicates_of_others_are_counted(own_servers, monkeypatch, capsys):
    import duplicates

    server = own_servers(extension=False)
    standby = own_servers(standby_of=server)
    for name, value in server.client_environment.items():
        if name.startswith("PG"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(duplicates, "AFTER_PROMOTION", 20_000)
    duplicates.main(16 * 1500, str(standby.dir))
    _, _, *rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    found = {label: cells for label, *cells in rows}
    none = ["0 of 24,000", "0 of 100,000", "0 of 100,000", "0 of 20,000"]
    assert all(found[label] == none for label in ("flake_next('twitter')", "sno_next()", "flake in plain SQL")), found
    assert found["PL/pgSQL as Mastodon's"][1] == "34,464 of 100,000"
    assert {"PL/pgSQL as Instagram's", "gen_random_uuid()"} <= set(found)
