// pgx: an ID is an int64.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec(ctx, "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)"); err != nil {
		log.Fatal(err)
	}

	// COPY, with IDs that the program has to know before. A consumer would miss rows whose IDs are of another transaction.
	var ids []int64
	both, err := db.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := both.QueryRow(ctx, "SELECT array_agg(id) FROM flake_batch('twitter', 1000) id").Scan(&ids); err != nil {
		log.Fatal(err)
	}
	copied, err := both.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "item"},
		pgx.CopyFromSlice(len(ids), func(number int) ([]interface{}, error) {
			return []interface{}{ids[number], fmt.Sprint("cup ", number)}, nil
		}))
	fmt.Println(copied, err, both.Commit(ctx))

	// In JSON without a type of your own, numbers are float64, which rounds, unless you say so.
	var text []byte
	if err := db.QueryRow(ctx, "SELECT to_jsonb(o) FROM orders o WHERE id = $1", ids[0]).Scan(&text); err != nil {
		log.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var order map[string]interface{}
	if err := decoder.Decode(&order); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order["id"].(json.Number).String() == fmt.Sprint(ids[0]))

	var refused *pgconn.PgError
	if _, err := db.Exec(ctx, "SELECT flake_timestamp($1)", int64(-1)); errors.As(err, &refused) {
		fmt.Println(refused.Code, refused.Hint)
	}
}
