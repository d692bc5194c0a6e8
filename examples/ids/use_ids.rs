//! An application that knows the ID of an order before it inserts the row.
#[allow(dead_code)] // a program seldom uses all of it
#[path = "../../clients/rust/ids.rs"]
mod ids;
mod source;

use std::env;

use tokio::task::block_in_place;
use tokio_postgres::NoTls;

use ids::{Ids, Options};
use source::Own;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = env::var("DATABASE_URL")?;
    let ids = Ids::new("twitter", Own::new(&url)?, Options::default());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);

    let order = block_in_place(|| ids.next())?;
    client.execute("INSERT INTO orders (id, item) VALUES ($1, 'tea')", &[&order]).await?;
    println!("{order}");
    block_in_place(|| drop(ids));
    Ok(())
}
