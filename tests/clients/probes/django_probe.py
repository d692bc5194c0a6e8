import django

django.setup()

from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, connection, models, transaction
from django.db.models import Func, Value
from django.db.models.fields.json import KT

from flake_django import FlakeField
from report import HOLE, IDS, MANY, MODE, report


class Kept(models.Model):
    n = models.AutoField(primary_key=True)
    id = models.BigIntegerField(null=True)
    many = ArrayField(models.BigIntegerField(null=True), null=True)
    document = models.JSONField(null=True)

    class Meta:
        app_label, db_table = "shop", "kept"


KEYS = {
    "plain": lambda: models.BigIntegerField(primary_key=True, db_default=Func(Value("twitter"), function="flake_next")),
    "set-up": lambda: FlakeField(primary_key=True),
    "identity": lambda: models.BigAutoField(primary_key=True),
}


class Made(models.Model):
    id = KEYS[MODE]()
    item = models.TextField(null=True)

    class Meta:
        app_label, db_table = "shop", "made"


class Many(models.Model):
    id = KEYS[MODE]()
    item = models.TextField()

    class Meta:
        app_label, db_table = "shop", "many"


def keep(id, other):
    row = Kept.objects.create(id=id, many=[id, other], document={"id": id})
    row.refresh_from_db()
    return row.id, row.many, Kept.objects.filter(id=id).count()


kept, made = [keep(int(id), int(id)) for id in IDS], Made.objects.create()
try:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT flake_timestamp(%s::bigint)", [-1])
except DatabaseError as raised:
    error = type(raised).__name__, raised.__cause__.sqlstate
hole, null = keep(HOLE, None), Kept.objects.create()
documents = Kept.objects.filter(document__isnull=False).exclude(id=HOLE).order_by("n")
objects = Many.objects.bulk_create(Many(item=str(number)) for number in range(MANY))
items = dict(Many.objects.values_list("id", "item"))
report(
    kept=kept,
    hole=hole,
    null=null.id,
    read=[row.document["id"] for row in documents],
    written=list(documents.annotate(text=KT("document__id")).values_list("text", flat=True)),
    made=(made.id, Made.objects.filter(id=made.id).count()),
    error=error,
    many=sum(items.get(object.id) == object.item for object in objects),
)
