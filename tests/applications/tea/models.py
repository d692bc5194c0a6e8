from django.contrib import admin
from django.db import models
from modelcluster.fields import ParentalKey
from wagtail.admin.panels import FieldPanel, InlinePanel
from wagtail.models import Orderable, Page
from wagtail.snippets.models import register_snippet


@register_snippet
class Kind(models.Model):
    name = models.CharField(max_length=50)
    panels = (FieldPanel("name"),)

    def __str__(self):
        return self.name


class TeaPage(Page):
    body = models.TextField(blank=True)
    kind = models.ForeignKey(Kind, null=True, blank=True, on_delete=models.SET_NULL)
    content_panels = (*Page.content_panels, FieldPanel("body"), FieldPanel("kind"), InlinePanel("notes"))


class Note(Orderable):
    page = ParentalKey(TeaPage, related_name="notes", on_delete=models.CASCADE)
    text = models.CharField(max_length=50)
    panels = (FieldPanel("text"),)


class Cup(models.Model):
    name = models.CharField(max_length=50)
    kind = models.ForeignKey(Kind, on_delete=models.CASCADE)

    def __str__(self):
        return self.name


class CupInline(admin.TabularInline):
    model = Cup
    extra = 1


@admin.register(Kind)
class KindAdmin(admin.ModelAdmin):
    inlines = (CupInline,)


admin.site.register(Cup)
