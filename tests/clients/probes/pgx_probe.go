// Reports what pgx does with IDs, as a line of JSON. It is called with IDs as texts.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

func text(id *int64) interface{} {
	if id == nil {
		return nil
	}
	return fmt.Sprint(*id)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "")
	must(err)
	setUp := os.Args[1] == "set-up"
	keep := func(id int64, other *int64) []interface{} {
		var back *int64
		var many []*int64
		var found int
		must(db.QueryRow(ctx, "INSERT INTO kept (id, many) VALUES ($1, $2) RETURNING id, many", id, []*int64{&id, other}).Scan(&back, &many))
		must(db.QueryRow(ctx, "SELECT count(*) FROM kept WHERE id = $1", back).Scan(&found))
		return []interface{}{text(back), []interface{}{text(many[0]), text(many[1])}, found}
	}
	var kept, read, written []interface{}
	for _, argument := range os.Args[2:] {
		id, err := strconv.ParseInt(argument, 10, 64)
		must(err)
		kept = append(kept, keep(id, &id))
		var parsed map[string]interface{}
		query := "SELECT jsonb_build_object('id', $1::bigint)"
		if setUp {
			var document []byte
			must(db.QueryRow(ctx, query, id).Scan(&document))
			decoder := json.NewDecoder(bytes.NewReader(document))
			decoder.UseNumber()
			must(decoder.Decode(&parsed))
		} else {
			must(db.QueryRow(ctx, query, id).Scan(&parsed))
		}
		read = append(read, fmt.Sprint(parsed["id"]))
		var back string
		must(db.QueryRow(ctx, "SELECT $1::jsonb ->> 'id'", map[string]interface{}{"id": id}).Scan(&back))
		written = append(written, back)
	}
	hole := keep(42, nil)
	var null, made *int64
	var found int
	must(db.QueryRow(ctx, "INSERT INTO kept (id) VALUES ($1) RETURNING id", nil).Scan(&null))
	must(db.QueryRow(ctx, "INSERT INTO made DEFAULT VALUES RETURNING id").Scan(&made))
	must(db.QueryRow(ctx, "SELECT count(*) FROM made WHERE id = $1", made).Scan(&found))
	_, refused := db.Exec(ctx, "SELECT flake_timestamp($1)", int64(-1))
	must(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"kept": kept, "hole": hole, "null": text(null), "read": read, "written": written,
		"made": []interface{}{text(made), found}, "error": []string{"PgError", refused.(*pgconn.PgError).Code}, "many": nil,
	}))
}
