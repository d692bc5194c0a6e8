from django.db import migrations, models


class Migration(migrations.Migration):
    """As the model was before: its keys have 32 bits."""

    initial = True
    operations = [
        migrations.CreateModel("Customer", [("id", models.AutoField(primary_key=True)), ("name", models.TextField())]),
    ]
