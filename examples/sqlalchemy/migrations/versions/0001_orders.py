"""orders and events"""

import sqlalchemy as sa
from alembic import op

import models

revision = "0001"
down_revision = None


def upgrade():
    op.execute("CREATE EXTENSION IF NOT EXISTS flake")
    op.create_table(
        "orders",
        sa.Column("id", sa.BigInteger(), server_default=sa.text("flake_next('twitter'::text)"), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "events",
        sa.Column("id", models.Sno(), server_default=sa.text("sno_next()"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def downgrade():
    op.drop_table("events")
    op.drop_table("orders")
