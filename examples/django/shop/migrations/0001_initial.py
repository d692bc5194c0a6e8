from django.db import migrations, models


class Migration(migrations.Migration):
    """As the models were before: their keys have 32 bits."""

    initial = True
    operations = [
        migrations.CreateModel("Customer", [("id", models.AutoField(primary_key=True)), ("name", models.TextField())]),
        migrations.CreateModel(
            "Order",
            [
                ("id", models.AutoField(primary_key=True)),
                ("customer", models.ForeignKey("shop.customer", models.CASCADE)),
                ("item", models.TextField()),
            ],
        ),
    ]
