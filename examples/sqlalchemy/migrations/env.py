from alembic import context
from sqlalchemy import create_engine

from models import Base


def include_object(object, name, type_, reflected, compare_to):
    """Tables without a model, such as partitions and the positions of consumers, stay as they are."""
    return not (type_ == "table" and reflected and compare_to is None)


with create_engine("postgresql+psycopg://").connect() as connection:
    context.configure(
        connection, target_metadata=Base.metadata, compare_server_default=True, include_object=include_object
    )
    with context.begin_transaction():
        context.run_migrations()
