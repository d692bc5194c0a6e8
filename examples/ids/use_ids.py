"""An application that knows the ID of an order before it inserts the row."""

import psycopg

from flake_ids import Ids

with Ids("twitter", "") as ids, psycopg.connect("") as db:
    order = ids.next()
    db.execute("INSERT INTO orders (id, item) VALUES (%s, 'tea')", [order])
print(order)
