from alembic import context
from sqlalchemy import create_engine

from models import Base

with create_engine("postgresql+psycopg://").connect() as connection:
    context.configure(connection, target_metadata=Base.metadata, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()
