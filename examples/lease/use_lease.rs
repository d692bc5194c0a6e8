//! An application that knows the ID of an order before it inserts the row.
#[path = "../../clients/rust/lease.rs"]
mod lease;

use std::env;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};

use lease::{Failure, Ids, LEASE, Lessor, RELEASE};

async fn connect() -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(&env::var("DATABASE_URL").expect("DATABASE_URL"), NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A connection that only leases are asked for on, in a runtime of the thread that renews them.
struct Own {
    runtime: Runtime,
    client: Option<Client>,
}

impl Own {
    fn row(&mut self, query: &str, values: &[&(dyn ToSql + Sync)]) -> Result<tokio_postgres::Row, Failure> {
        let client = self.client.take();
        let asked = async {
            let client = match client {
                Some(client) => client,
                None => connect().await?,
            };
            let row = client.query_one(query, values).await?;
            Ok::<_, tokio_postgres::Error>((client, row))
        };
        // A connection whose request has failed, or has not ended in time, is dropped here.
        let (client, row) = self.runtime.block_on(async { timeout(Duration::from_secs(2), asked).await })??;
        self.client = Some(client);
        Ok(row)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        let refused = error.code().is_some_and(|state| ["42501", "42883", "0A000", "22023"].contains(&state.code()));
        // Its own text is "db error".
        let text = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
        Failure { refused, cause: text.into() }
    }
}

impl From<tokio::time::error::Elapsed> for Failure {
    fn from(late: tokio::time::error::Elapsed) -> Failure {
        Failure { refused: false, cause: late.into() }
    }
}

impl Lessor for Own {
    fn lease(&mut self, layout: &str, token: Option<i64>) -> Result<lease::Row, Failure> {
        let row = self.row(LEASE, &[&layout, &token])?;
        let int = |name| row.get::<&str, Option<i32>>(name).unwrap_or(0);
        let bigint = |name| row.get::<&str, Option<i64>>(name).unwrap_or(0);
        if int("protocol") != 1 {
            return Err(Failure { refused: true, cause: "the server speaks another protocol of leases".into() });
        }
        Ok(lease::Row {
            reason: row.get("reason"),
            wait: bigint("wait"),
            token: bigint("token"),
            worker: bigint("worker"),
            tick_from: bigint("tick_from"),
            tick_until: bigint("tick_until"),
            shift: int("shift"),
            low: bigint("low"),
            step: int("step"),
            count: bigint("count"),
            epoch: bigint("epoch"),
            tick: bigint("tick"),
            now: bigint("now"),
            until: bigint("until"),
        })
    }

    fn release(&mut self, layout: &str, token: i64, last_tick: Option<i64>) -> Result<(), Failure> {
        self.row(RELEASE, &[&layout, &token, &last_tick]).map(drop)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = Own { runtime: Builder::new_current_thread().enable_all().build()?, client: None };
    let ids = Ids::new("twitter", Duration::from_secs(5), own);

    let order = tokio::task::block_in_place(|| ids.next())?;
    connect().await?.execute("INSERT INTO orders (id, item) VALUES ($1, 'tea')", &[&order]).await?;
    println!("{order}");
    tokio::task::block_in_place(|| drop(ids));
    Ok(())
}
