from django.contrib import admin
from django.urls import include, path
from wagtail import urls as wagtail_urls
from wagtail.admin import urls as admin_urls

urlpatterns = [path("django-admin/", admin.site.urls), path("admin/", include(admin_urls)), path("", include(wagtail_urls))]
