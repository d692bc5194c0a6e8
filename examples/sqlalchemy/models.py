"""SQLAlchemy 2: models whose keys flake makes, with as few statements as with Identity."""

from sqlalchemy import BigInteger, Sequence, text
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import UserDefinedType


def flake_id():
    """A key that flake makes. The default is written as PostgreSQL shows it, so that Alembic sees no difference.

    By a sentinel, SQLAlchemy inserts a thousand objects in one statement. It wants a sequence for that, which is neither
    created nor used if it is optional."""
    return mapped_column(
        BigInteger,
        Sequence("flake", optional=True),
        server_default=text("flake_next('twitter'::text)"),
        insert_sentinel=True,
        primary_key=True,
    )


class Sno(UserDefinedType):
    """The type sno; in Python, its 16 characters."""

    cache_ok = True

    def get_col_spec(self, **_):
        return "sno"


# For Alembic and other tools that read the types of columns.
PGDialect.ischema_names["sno"] = Sno


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = flake_id()
    item: Mapped[str]


class Event(Base):
    __tablename__ = "events"
    id: Mapped[str] = mapped_column(Sno, server_default=text("sno_next()"), primary_key=True)
    name: Mapped[str]
