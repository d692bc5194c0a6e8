mod report;

use report::{HOLE, Report, ids};
use serde_json::json;
use sqlx::postgres::PgPool;
use sqlx::{query, query_as, query_scalar};

#[tokio::main]
async fn main() -> Result<(), sqlx::Error> {
    let db = PgPool::connect(&std::env::var("DATABASE_URL").unwrap()).await?;
    let (mut kept, mut read, mut written) = (vec![], vec![], vec![]);
    for (id, other) in ids().into_iter().map(|id| (id, Some(id))).chain([(HOLE, None)]) {
        let (kept_id, many) = query_as("INSERT INTO kept (id, many) VALUES ($1, $2) RETURNING id, many")
            .bind(id)
            .bind(vec![Some(id), other])
            .fetch_one(&db)
            .await?;
        kept.push((
            kept_id,
            many,
            query_scalar("SELECT count(*) FROM kept WHERE id = $1").bind(id).fetch_one(&db).await?,
        ));
        if id == HOLE {
            continue;
        }
        read.push(query_scalar("SELECT jsonb_build_object('id', $1::bigint)").bind(id).fetch_one(&db).await?);
        written.push(query_scalar("SELECT $1::jsonb ->> 'id'").bind(json!({ "id": id })).fetch_one(&db).await?);
    }
    let hole = kept.pop().unwrap();
    let null = query_scalar("INSERT INTO kept (id) VALUES ($1) RETURNING id").bind(None::<i64>).fetch_one(&db).await?;
    let made: i64 = query_scalar("INSERT INTO made DEFAULT VALUES RETURNING id").fetch_one(&db).await?;
    let found = query_scalar("SELECT count(*) FROM made WHERE id = $1").bind(made).fetch_one(&db).await?;
    let error = query("SELECT flake_timestamp($1)").bind(-1i64).execute(&db).await.unwrap_err();
    let error = ("PgDatabaseError", error.as_database_error().unwrap().code().unwrap().into_owned());
    Report { kept, hole, null, read, written, made: (made, found), error }.print();
    Ok(())
}
