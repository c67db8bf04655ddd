"""A Django project of one application and two databases, `plain` and `twin`.

Django is configured on import, once a process; its connections use psycopg 3, as it chooses.
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.db import models

from conftest import PLAIN, TWIN


def database(url: str, schema: str, **options: object) -> dict[str, object]:
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname,
        "PORT": parts.port,
        "OPTIONS": {"options": f"-c search_path={schema}", **options},
        # Every session of the tests goes on to the next test, as one of a web server would.
        "CONN_MAX_AGE": None,
    }


BOUND = {"server_side_binding": True, "prepare_threshold": 2}

if not settings.configured:
    direct, toastrack = os.environ.get("DIRECT_URL", ""), os.environ.get("TOASTRACK_URL", "")
    settings.configure(
        DATABASES={
            "default": {},
            "plain": database(direct, PLAIN),
            "twin": database(toastrack, TWIN),
            # Parameters in the extended protocol, and statements prepared at their third use.
            "plain_bound": database(direct, PLAIN, **BOUND),
            "twin_bound": database(toastrack, TWIN, **BOUND),
        },
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()


class Author(models.Model):
    name = models.TextField()

    class Meta:
        app_label = "shelf"
        db_table = "django_author"


class Book(models.Model):
    """The four kinds of field that a large value stands in."""

    author = models.ForeignKey(Author, models.CASCADE, null=True)
    name = models.CharField(max_length=200, unique=True)
    abstract = models.CharField(max_length=4000, null=True)
    body = models.TextField(null=True)
    data = models.JSONField(null=True)
    content = models.BinaryField(null=True)
    version = models.IntegerField(default=1)

    class Meta:
        app_label = "shelf"
        db_table = "django_book"


OFFLOADED = {
    "django_author": {"name": "text"},
    "django_book": {
        "abstract": "varchar(4000)",
        "body": "text",
        "data": "jsonb",
        "content": "bytea",
    },
}
