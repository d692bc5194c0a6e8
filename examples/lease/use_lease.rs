//! An application that knows the ID of an order before it inserts the row.
mod lease;

use std::env;
use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use lease::{Ids, QUERY, Row};

async fn connect() -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(&env::var("DATABASE_URL").expect("DATABASE_URL"), NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn lease(layout: &str, worker: Option<i32>, until: Option<i64>) -> Result<Row, tokio_postgres::Error> {
    let row = connect().await?.query_one(QUERY, &[&layout, &worker, &until]).await?;
    let int = |name| row.get::<&str, Option<i32>>(name).unwrap_or(0);
    let bigint = |name| row.get::<&str, Option<i64>>(name).unwrap_or(0);
    Ok(Row {
        worker: int("worker"),
        tick_from: bigint("tick_from"),
        tick_until: bigint("tick_until"),
        shift: int("shift"),
        low: bigint("low"),
        count: int("count"),
        epoch: bigint("epoch"),
        tick: bigint("tick"),
        now: bigint("now"),
        until: bigint("until"),
        wait: bigint("wait"),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Handle::current();
    let ids = Ids::new("twitter", Duration::from_secs(5), move |layout, worker, until| {
        Ok(runtime.block_on(lease(layout, worker, until))?)
    });

    let order = tokio::task::block_in_place(|| ids.next())?;
    connect().await?.execute("INSERT INTO orders (id, item) VALUES ($1, 'tea')", &[&order]).await?;
    println!("{order}");
    Ok(())
}
