import django

django.setup()

from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, connection, models, transaction
from django.db.models.fields.json import KT
from report import IDS, SET_UP, report

from flake_django import FlakeField


class Kept(models.Model):
    n = models.AutoField(primary_key=True)
    id = models.BigIntegerField(null=True)
    many = ArrayField(models.BigIntegerField(null=True), null=True)
    document = models.JSONField(null=True)

    class Meta:
        app_label, db_table = "shop", "kept"


class Made(models.Model):
    id = FlakeField(primary_key=True) if SET_UP else models.BigAutoField(primary_key=True)
    item = models.TextField(null=True)

    class Meta:
        app_label, db_table = "shop", "made"


def keep(id):
    row = Kept.objects.create(id=id, many=[id, None], document={"id": id})
    row.refresh_from_db()
    return row.id, row.many, Kept.objects.filter(id=id).count()


kept, made = [keep(int(id)) for id in IDS], Made.objects.create()
try:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT flake_timestamp(%s::bigint)", [-1])
except DatabaseError as raised:
    error = type(raised).__name__, raised.__cause__.sqlstate
null = Kept.objects.create()
report(
    kept=kept,
    null=null.id,
    read=[row.document["id"] for row in Kept.objects.filter(document__isnull=False).order_by("n")],
    written=list(Kept.objects.filter(document__isnull=False).order_by("n").annotate(text=KT("document__id")).values_list("text", flat=True)),
    made=(made.id, Made.objects.filter(id=made.id).count()),
    error=error,
)
