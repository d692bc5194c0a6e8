import os
import sys

import django
from django.conf import settings

APPS = [
    "wagtail.contrib.redirects", "wagtail.embeds", "wagtail.sites", "wagtail.users", "wagtail.documents", "wagtail.images",
    "wagtail.search", "wagtail.admin", "wagtail", "modelcluster", "taggit", "django.contrib.admin", "django.contrib.auth",
    "django.contrib.contenttypes", "django.contrib.sessions",
]  # fmt: skip
WIDE = ["flake_django.FlakeConfig"] if os.environ.get("WIDE") else []
settings.configure(
    SECRET_KEY="of a test", USE_TZ=True, ROOT_URLCONF="wagtail_site", STATIC_URL="/static/", WAGTAIL_SITE_NAME="test",
    WAGTAILADMIN_BASE_URL="http://test",
    INSTALLED_APPS=APPS + WIDE,
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"], "USER": "postgres", "NAME": "postgres",
    }},
    WAGTAILSEARCH_BACKENDS={"default": {"BACKEND": "wagtail.search.backends.database"}},
    MEDIA_ROOT=os.environ.get("MEDIA", "/nonexistent"),
)  # fmt: skip
django.setup()

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.db import models
from taggit.models import TaggedItem
from wagtail.contrib.redirects.models import Redirect
from wagtail.documents.models import Document
from wagtail.models import Collection, GroupPagePermission, Locale, Page, PageLogEntry, Site, Task, Workflow, WorkflowTask

if WIDE:
    # Keys of any model; an application has a model of its own with a BigIntegerField for that.
    TaggedItem._meta.get_field("object_id").__class__ = models.BigIntegerField


def make(name, count):
    """Content of all kinds, through the models that have to do with it."""
    root = Page.get_first_root_node()
    user = User.objects.create_superuser(f"{name}-user", "a@example.org", "secret")
    group = Group.objects.create(name=f"{name}-group")
    user.groups.add(group)
    section = root.add_child(instance=Page(title=name, slug=name, owner=user, locale=Locale.get_default()))
    for number in range(count):
        page = section.add_child(instance=Page(title=f"{name} {number}", slug=f"{name}-{number}", owner=user))
        revision = page.save_revision(user=user, log_action=True)
        revision.publish(user=user)
        Redirect.objects.create(old_path=f"/{name}/{number}", redirect_page=page)
    section.refresh_from_db()
    first = section.get_children().first()
    section.copy(recursive=True, update_attrs={"title": f"{name} copy", "slug": f"{name}-copy"}, user=user)
    assert Page.objects.get(slug=f"{name}-copy").get_children().count() == count
    other = Page.objects.get(pk=root.pk).add_child(instance=Page(title=f"{name} other", slug=f"{name}-other"))
    first.move(other, pos="last-child")
    first = Page.objects.get(pk=first.pk)
    assert first.get_parent().pk == other.pk and first.owner.pk == user.pk
    assert Page.objects.get(pk=section.pk).get_children().count() == count - 1
    assert Page.objects.descendant_of(section).filter(owner=user).count() == count - 1
    GroupPagePermission.objects.create(group=group, page=section, permission_type="change")
    collection = Collection.get_first_root_node().add_child(name=name)
    document = Document.objects.create(title=name, collection=collection, file=ContentFile(b"text", name=f"{name}.txt"))
    document.tags.add(f"{name}-tag")
    workflow = Workflow.objects.create(name=name)
    task = Task.objects.create(name=name)
    WorkflowTask.objects.create(workflow=workflow, task=task, sort_order=0)
    assert [tag.name for tag in Document.objects.get(pk=document.pk).tags.all()] == [f"{name}-tag"]
    assert Page.objects.get(pk=first.pk).latest_revision.user_id == user.pk
    assert PageLogEntry.objects.filter(page=first.pk).exists()
    Site.objects.create(hostname=f"{name}.test", root_page=section)
    assert Site.objects.get(hostname=f"{name}.test").root_page.pk == section.pk
    gone = section.get_children().last()
    key = gone.pk
    gone.delete()
    # Its log stays, by a key without a constraint.
    assert PageLogEntry.objects.filter(page=key).delete()[0] > 0
    assert not Page.objects.filter(pk=key).exists()


def find():
    """How many rows there are, and which are not found."""
    rows, lost = 0, []
    for model in apps.get_models(include_auto_created=True):
        if not model._meta.managed or model._meta.proxy:
            continue
        for row in model._default_manager.all():
            rows += 1
            if not model._base_manager.filter(pk=row.pk).exists():
                lost.append(f"{model._meta.label} {row.pk}")
            for field in model._meta.concrete_fields:
                if isinstance(field, models.ForeignKey):
                    value = getattr(row, field.attname)
                    name = field.target_field.name
                    if value is not None and not field.related_model._base_manager.filter(**{name: value}).exists():
                        lost.append(f"{model._meta.label}.{field.name} {value}")
    print(rows, len(lost), *lost[:3])


command, *arguments = sys.argv[1:]
if command == "migrate":
    call_command("migrate", verbosity=0, interactive=False)
elif command == "make":
    make(arguments[0], int(arguments[1]))
else:
    find()
