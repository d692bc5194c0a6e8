"""The apps of the site, with keys as they have in their own configurations, or wide ones."""

import importlib
import inspect

from django.apps import AppConfig

APPS = [
    "wagtail.contrib.redirects", "wagtail.embeds", "wagtail.sites", "wagtail.users", "wagtail.documents", "wagtail.images",
    "wagtail.search", "wagtail.admin", "wagtail", "modelcluster", "taggit", "django.contrib.admin", "django.contrib.auth",
    "django.contrib.contenttypes", "django.contrib.sessions",
]  # fmt: skip


def wide(app):
    """The app's own configuration with another type of keys, by the name that INSTALLED_APPS takes."""
    try:
        module = importlib.import_module(f"{app}.apps")
        kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
        kinds = [kind for kind in kinds if issubclass(kind, AppConfig)]
    except ModuleNotFoundError:
        kinds = []
    kind = next((kind for kind in kinds if getattr(kind, "default", False)), kinds[0] if kinds else AppConfig)
    name = "Wide_" + app.replace(".", "_")
    globals()[name] = type(name, (kind,), {"name": app, "default_auto_field": "django.db.models.BigAutoField", "default": False})
    return f"{__name__}.{name}"
