from django.contrib.postgres.operations import CreateExtension
from django.db import migrations

from flake_django import FlakeField


class Migration(migrations.Migration):
    """The rows of an existing model keep their keys; new ones get theirs from flake."""

    dependencies = [("shop", "0001_initial")]
    operations = [
        CreateExtension("flake"),
        migrations.AlterField(
            "customer", "id", FlakeField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
        ),
        migrations.RunSQL(
            "ALTER TABLE shop_customer ALTER id DROP IDENTITY IF EXISTS, ALTER id SET DEFAULT flake_next('twitter')"
        ),
    ]
