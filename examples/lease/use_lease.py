"""An application that knows the ID of an order before it inserts the row."""

import psycopg

from lease import Ids, lease_from

ids = Ids("twitter", lease_from(psycopg.connect))

order = ids.next()
with psycopg.connect() as db:
    db.execute("INSERT INTO orders (id, item) VALUES (%s, 'tea')", [order])
print(order)
