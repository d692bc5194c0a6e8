"""Django's side of flake: a key for your own models, and what models of others need whose tables were converted."""

from django.apps import AppConfig
from django.db import models


class FlakeField(models.BigAutoField):
    """A primary key that flake makes."""

    def db_type_suffix(self, connection):
        return "DEFAULT flake_next('twitter')"


class FlakeConfig(AppConfig):
    """In INSTALLED_APPS, it lets models with an AutoField, such as those of django.contrib.auth, find rows whose keys do not fit
    into 32 bits. Without it, Django answers DoesNotExist and does not ask the database."""

    name = "flake_django"

    def ready(self):
        from django.db.backends.postgresql.operations import DatabaseOperations

        ranges = DatabaseOperations.integer_field_ranges
        DatabaseOperations.integer_field_ranges = ranges | {"AutoField": ranges["BigAutoField"]}
