"""Settings for Django's own tests, whose databases are copies of one that has the extensions. With ADOPT, they are adopted."""

import os

from django.db import connections
from django.test.runner import DiscoverRunner


class Runner(DiscoverRunner):
    def setup_databases(self, **options):
        made = super().setup_databases(**options)
        for alias in connections if os.environ.get("ADOPT") else []:
            with connections[alias].cursor() as cursor:
                cursor.execute("CALL flake_adopt_schema('public', 'twitter')")
                print("adopted", alias, len(cursor.fetchone()[0]))
                # loaddata and flush call setval.
                name = connections[alias].settings_dict["NAME"]
                cursor.execute(f"ALTER DATABASE {name} SET search_path = public, flake_sequences, pg_catalog")
            connections[alias].close()
        return made


def database(name):
    return {
        "ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"], "USER": "postgres", "NAME": name,
        "TEST": {"TEMPLATE": os.environ["TEMPLATE"]},
    }  # fmt: skip


DATABASES = {"default": database("django_default"), "other": database("django_other")}
SECRET_KEY = "of a test"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEST_RUNNER = "django_settings.Runner"
USE_TZ = False
