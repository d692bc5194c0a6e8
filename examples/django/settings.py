import os

# PGHOST and the others say where the server is.
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "flake_django.FlakeConfig", "shop.apps.ShopConfig"]
USE_TZ = True
