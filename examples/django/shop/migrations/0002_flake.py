from django.contrib.postgres.operations import CreateExtension
from django.db import migrations

from flake_django import FlakeField


def key():
    return FlakeField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """The rows of existing models keep their keys; new ones get theirs from flake."""

    dependencies = [("shop", "0001_initial")]
    operations = [
        CreateExtension("flake"),
        migrations.AlterField("customer", "id", key()),
        migrations.AlterField("order", "id", key()),
        migrations.RunSQL("""
            ALTER TABLE shop_customer ALTER id DROP IDENTITY IF EXISTS, ALTER id SET DEFAULT flake_next('twitter');
            ALTER TABLE shop_order ALTER id DROP IDENTITY IF EXISTS, ALTER id SET DEFAULT flake_next('twitter')"""),
    ]
