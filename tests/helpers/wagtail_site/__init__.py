"""A site of Wagtail, as it comes from PyPI, for a server that the environment names.

`python -m wagtail_site migrate` makes its tables; `make NAME NUMBER` makes pages and other content by its own models, and reads
it again; `find` looks for each row of each model by its key, and for each that a foreign key names. With WIDE=yes, Django knows
that keys are bigint, as docs/how-to/clients.md tells it.
"""
