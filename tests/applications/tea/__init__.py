"""A small site of Wagtail and of Django's admin: settings, models and addresses."""
