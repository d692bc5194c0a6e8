import django.db.models.deletion
from django.db import migrations, models

import flake_django


class Migration(migrations.Migration):

    dependencies = [
        ('shop', '0002_flake'),
    ]

    operations = [
        migrations.CreateModel(
            name='Order',
            fields=[
                ('id', flake_django.FlakeField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item', models.TextField()),
                ('customer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='shop.customer')),
            ],
        ),
    ]
