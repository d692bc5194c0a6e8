from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "shop"
    # The setting DEFAULT_AUTO_FIELD would also count for Django's own table of migrations, which comes before the extension.
    default_auto_field = "flake_django.FlakeField"
