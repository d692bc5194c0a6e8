from models import flake_id
from report import IDS, SET_UP, report
from sqlalchemy import BigInteger, cast, create_engine, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Kept(Base):
    __tablename__ = "kept"
    n: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[int | None] = mapped_column(BigInteger)
    many = mapped_column(ARRAY(BigInteger))
    document = mapped_column(JSONB)


class Made(Base):
    __tablename__ = "made"
    if SET_UP:
        id: Mapped[int] = flake_id()
    else:
        id: Mapped[int] = mapped_column(BigInteger, server_default=text("flake_next('twitter')"), primary_key=True)
    item: Mapped[str | None]


with Session(create_engine("postgresql+psycopg://")) as session:
    rows = [Kept(id=int(id), many=[int(id), None], document={"id": int(id)}) for id in IDS]
    null, made = Kept(), Made()
    session.add_all([*rows, null, made])
    session.commit()
    count = lambda model, id: session.scalar(select(func.count()).where(model.id == id))  # noqa: E731
    try:
        session.execute(select(func.flake_timestamp(cast(-1, BigInteger))))
    except DBAPIError as raised:
        error = type(raised).__name__, raised.orig.sqlstate
        session.rollback()
    report(
        kept=[(row.id, row.many, count(Kept, row.id)) for row in rows],
        null=null.id,
        read=[session.scalar(select(func.jsonb_build_object("id", cast(int(id), BigInteger), type_=JSONB)))["id"] for id in IDS],
        written=[session.scalar(select(Kept.document["id"].astext).where(Kept.n == row.n)) for row in rows],
        made=(made.id, count(Made, made.id)),
        error=error,
    )
