"""A small document shelf: an ordinary SQLAlchemy application.

Nothing in this package knows of Toastrack. It reads DATABASE_URL, which names either Postgres
itself or Toastrack in front of it.
"""
