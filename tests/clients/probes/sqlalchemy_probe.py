from sqlalchemy import BigInteger, Identity, cast, create_engine, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from models import flake_id
from report import HOLE, IDS, MANY, MODE, report


class Base(DeclarativeBase):
    pass


class Kept(Base):
    __tablename__ = "kept"
    n: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[int | None] = mapped_column(BigInteger)
    many = mapped_column(ARRAY(BigInteger))
    document = mapped_column(JSONB)


KEYS = {
    "plain": lambda: mapped_column(BigInteger, server_default=text("flake_next('twitter')"), primary_key=True),
    "set-up": flake_id,
    "identity": lambda: mapped_column(BigInteger, Identity(), primary_key=True),
}


class Made(Base):
    __tablename__ = "made"
    id: Mapped[int] = KEYS[MODE]()
    item: Mapped[str | None]


class Many(Base):
    __tablename__ = "many"
    id: Mapped[int] = KEYS[MODE]()
    item: Mapped[str]


with Session(create_engine("postgresql+psycopg://")) as session:
    rows = [Kept(id=int(id), many=[int(id), int(id)], document={"id": int(id)}) for id in IDS]
    hole, null, made = Kept(id=HOLE, many=[HOLE, None]), Kept(), Made()
    session.add_all([*rows, hole, null, made])
    session.commit()
    count = lambda model, id: session.scalar(select(func.count()).where(model.id == id))  # noqa: E731
    try:
        session.execute(select(func.flake_timestamp(cast(-1, BigInteger))))
    except DBAPIError as raised:
        error = type(raised).__name__, raised.orig.sqlstate
        session.rollback()
    objects = [Many(item=str(number)) for number in range(MANY)]
    session.add_all(objects)
    session.flush()
    items = {row.id: row.item for row in session.execute(select(Many.id, Many.item))}
    report(
        kept=[(row.id, row.many, count(Kept, row.id)) for row in rows],
        hole=(hole.id, hole.many, count(Kept, hole.id)),
        null=null.id,
        read=[session.scalar(select(func.jsonb_build_object("id", cast(int(id), BigInteger), type_=JSONB)))["id"] for id in IDS],
        written=[session.scalar(select(Kept.document["id"].astext).where(Kept.n == row.n)) for row in rows],
        made=(made.id, count(Made, made.id)),
        error=error,
        many=sum(items[object.id] == object.item for object in objects),
    )
