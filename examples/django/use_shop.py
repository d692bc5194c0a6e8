"""Uses the models, after `django-admin migrate`."""

from datetime import timedelta

import django

django.setup()

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import DateTimeField, Func
from django.utils import timezone

from shop.models import Customer, Order

customer = Customer.objects.create(name="Ada")
orders = Order.objects.bulk_create(Order(customer=customer, item=f"cup {number}") for number in range(1000))
print(customer.pk, len({order.pk for order in orders}), customer.order_set.count())
print([order.item for order in Order.objects.order_by("pk")] == [order.item for order in orders])

made_at = Func("pk", function="flake_timestamp", output_field=DateTimeField())
recent = Order.objects.alias(made_at=made_at).filter(made_at__gte=timezone.now() - timedelta(hours=1))
print(recent.count())

# A table of Django's own, converted; its model has an AutoField.
with connection.cursor() as cursor:
    cursor.execute("""
        ALTER TABLE auth_user_groups ALTER user_id TYPE bigint;
        ALTER TABLE auth_user_user_permissions ALTER user_id TYPE bigint;
        ALTER TABLE auth_user ALTER id DROP IDENTITY, ALTER id TYPE bigint, ALTER id SET DEFAULT flake_next('twitter')""")
user = User.objects.create(username="ada")
group = user.groups.create(name="shop")
print(user.pk, group.pk, User.objects.get(pk=user.pk) == user)
print(User.objects.get(groups=group) == user)
