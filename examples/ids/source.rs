//! A connection of tokio-postgres that IDs are fetched on, in a runtime of the thread that fetches.
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls};

use crate::ids::{BATCH, Failure, Source};

pub struct Own {
    runtime: Runtime,
    config: Config,
    client: Option<(Client, JoinHandle<Result<(), tokio_postgres::Error>>)>,
}

impl Own {
    pub fn new(url: &str) -> Result<Own, Box<dyn std::error::Error>> {
        let mut config: Config = url.parse()?;
        if config.get_application_name().is_none() {
            config.application_name("flake-ids");
        }
        Ok(Own { runtime: Builder::new_current_thread().enable_all().build()?, config, client: None })
    }
}

impl Source for Own {
    fn batch(&mut self, layout: &str, count: i32) -> Result<Vec<i64>, Failure> {
        let (client, config) = (self.client.take(), &self.config);
        let asked = async {
            let client = match client {
                Some(client) => client,
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    (client, tokio::spawn(connection))
                }
            };
            let rows = client.0.query(BATCH, &[&layout, &count]).await?;
            Ok::<_, tokio_postgres::Error>((client, rows.iter().map(|row| row.get(0)).collect()))
        };
        // A connection whose request has failed, or has not ended in time, is dropped here.
        let (client, ids) = self.runtime.block_on(async { timeout(Duration::from_secs(2), asked).await })??;
        self.client = Some(client);
        Ok(ids)
    }

    fn rest(&mut self) {
        if let Some((client, connection)) = self.client.take() {
            drop(client);
            let _ = self.runtime.block_on(async { timeout(Duration::from_secs(2), connection).await });
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        // Its own text is "db error".
        let text = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
        Failure { sqlstate: error.code().map(|state| state.code().to_owned()), cause: text.into() }
    }
}

impl From<tokio::time::error::Elapsed> for Failure {
    fn from(late: tokio::time::error::Elapsed) -> Failure {
        Failure { sqlstate: None, cause: late.into() }
    }
}
