mod report;

use report::{HOLE, Report, ids};
use serde_json::json;
use tokio_postgres::{Error, NoTls};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (db, connection) = tokio_postgres::connect(&std::env::var("DATABASE_URL").unwrap(), NoTls).await?;
    tokio::spawn(connection);
    let (mut kept, mut read, mut written) = (vec![], vec![], vec![]);
    for (id, other) in ids().into_iter().map(|id| (id, Some(id))).chain([(HOLE, None)]) {
        let row = db
            .query_one("INSERT INTO kept (id, many) VALUES ($1, $2) RETURNING id, many", &[&id, &vec![Some(id), other]])
            .await?;
        let found = db.query_one("SELECT count(*) FROM kept WHERE id = $1", &[&id]).await?;
        kept.push((row.get(0), row.get(1), found.get(0)));
        if id == HOLE {
            continue;
        }
        read.push(db.query_one("SELECT jsonb_build_object('id', $1::bigint)", &[&id]).await?.get(0));
        written.push(db.query_one("SELECT $1::jsonb ->> 'id'", &[&json!({ "id": id })]).await?.get(0));
    }
    let hole = kept.pop().unwrap();
    let null = db.query_one("INSERT INTO kept (id) VALUES ($1) RETURNING id", &[&None::<i64>]).await?.get(0);
    let made: i64 = db.query_one("INSERT INTO made DEFAULT VALUES RETURNING id", &[]).await?.get(0);
    let found = db.query_one("SELECT count(*) FROM made WHERE id = $1", &[&made]).await?.get(0);
    let error = db.query("SELECT flake_timestamp($1)", &[&-1i64]).await.unwrap_err();
    let error = ("DbError", error.as_db_error().unwrap().code().code().to_owned());
    Report { kept, hole, null, read, written, made: (made, found), error }.print();
    Ok(())
}
