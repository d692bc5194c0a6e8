"""Settings of the site. With WIDE, Django knows that keys are bigint, as docs/how-to/clients.md tells it."""

import os

SECRET_KEY = "of a test"
DEBUG = USE_TZ = True
ROOT_URLCONF = "tea.urls"
STATIC_URL = "/static/"
MEDIA_ROOT = os.environ["MEDIA"]
WAGTAIL_SITE_NAME = "Tea"
WAGTAIL_GRAVATAR_PROVIDER_URL = None
WAGTAILADMIN_BASE_URL = "http://127.0.0.1"
WAGTAIL_ENABLE_UPDATE_CHECK = WAGTAIL_ENABLE_WHATS_NEW_BANNER = False
ALLOWED_HOSTS = ["*"]
# Made by the test.
MIGRATION_MODULES = {"tea": "tea_migrations"}
INSTALLED_APPS = [
    "tea", "wagtail.contrib.redirects", "wagtail.embeds", "wagtail.sites", "wagtail.users", "wagtail.snippets",
    "wagtail.documents", "wagtail.images", "wagtail.search", "wagtail.admin", "wagtail", "modelcluster", "taggit",
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages", "django.contrib.staticfiles", *(["flake_django.FlakeConfig"] if os.environ.get("WIDE") else []),
]  # fmt: skip
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware", "django.contrib.messages.middleware.MessageMiddleware",
    "wagtail.contrib.redirects.middleware.RedirectMiddleware",
]  # fmt: skip
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.debug", "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth", "django.contrib.messages.context_processors.messages",
    ]},
}]  # fmt: skip
DATABASES = {"default": {
    "ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"], "USER": "postgres", "NAME": os.environ["PGDATABASE"],
}}  # fmt: skip
WAGTAILSEARCH_BACKENDS = {"default": {"BACKEND": "wagtail.search.backends.database"}}
