"""Uses the models, after `alembic upgrade head`."""

from datetime import timedelta

from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import Session

from models import Event, Order

engine = create_engine("postgresql+psycopg://")

with Session(engine) as session:
    orders = [Order(item=f"cup {number}") for number in range(1000)]
    session.add_all(orders)
    session.commit()  # one INSERT
    print([order.item for order in session.scalars(select(Order).order_by(Order.id))] == [order.item for order in orders])

    recent = select(Order).where(func.flake_timestamp(Order.id) >= func.now() - timedelta(hours=1))
    order = session.scalars(recent.order_by(Order.id)).first()
    print(order.id, session.get(Order, order.id).item)

    event = Event(name="opened")
    session.add(event)
    session.commit()
    print(event.id, session.scalar(select(func.sno_timestamp(Event.id)).where(Event.id == event.id)))
