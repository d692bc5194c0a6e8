//! sqlx: an ID is an i64.

use sqlx::postgres::{PgDatabaseError, PgPool};

#[derive(sqlx::FromRow)]
struct Order {
    id: i64,
    item: String,
}

#[tokio::main]
async fn main() -> Result<(), sqlx::Error> {
    let db = PgPool::connect(&std::env::var("DATABASE_URL").unwrap()).await?;
    sqlx::query("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text NOT NULL)")
        .execute(&db)
        .await?;

    // Many rows in one statement; their IDs increase.
    let items: Vec<String> = (0..1000).map(|number| format!("cup {number}")).collect();
    let orders: Vec<Order> = sqlx::query_as("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id, item")
        .bind(&items)
        .fetch_all(&db)
        .await?;
    println!("{} {}", orders.is_sorted_by_key(|order| order.id), orders.iter().map(|order| &order.item).eq(&items));

    let ids: Vec<i64> = orders.iter().map(|order| order.id).collect();
    let found: i64 =
        sqlx::query_scalar("SELECT count(*) FROM orders WHERE id = ANY ($1)").bind(&ids).fetch_one(&db).await?;
    println!("{found}");

    let error = sqlx::query("SELECT flake_timestamp($1)").bind(-1i64).execute(&db).await.unwrap_err();
    let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
    println!("{} {}", error.code(), error.hint().unwrap());
    Ok(())
}
