//! tokio-postgres: an ID is an i64.

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, NoTls};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (mut db, connection) = tokio_postgres::connect(&std::env::var("DATABASE_URL").unwrap(), NoTls).await?;
    tokio::spawn(connection);
    db.batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)").await?;

    // Many rows in one statement; their IDs increase.
    let items: Vec<String> = (0..1000).map(|number| format!("cup {number}")).collect();
    let rows = db.query("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id", &[&items]).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    let found = db.query("SELECT item FROM orders WHERE id = ANY ($1) ORDER BY id", &[&ids]).await?;
    println!("{}", found.iter().map(|row| row.get::<_, &str>(0)).eq(&items));

    // COPY, with IDs that the program has to know before. A consumer would miss rows whose IDs are of another transaction.
    let both = db.transaction().await?;
    let ids = both.query("SELECT flake_batch('twitter', 1000)", &[]).await?;
    let sink = both.copy_in("COPY orders (id, item) FROM STDIN (FORMAT binary)").await?;
    let writer = BinaryCopyInWriter::new(sink, &[Type::INT8, Type::TEXT]);
    tokio::pin!(writer);
    for (row, item) in ids.iter().zip(&items) {
        writer.as_mut().write(&[&row.get::<_, i64>(0), item]).await?;
    }
    println!("{}", writer.finish().await?);
    both.commit().await?;

    let error = db.query("SELECT flake_timestamp($1)", &[&-1i64]).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    println!("{} {}", error.code().code(), error.hint().unwrap());
    Ok(())
}
