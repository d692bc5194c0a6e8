// Reports what database/sql with lib/pq does with IDs, as a line of JSON. It is called with IDs as texts.
package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/lib/pq"
)

func text(id sql.NullInt64) interface{} {
	if !id.Valid {
		return nil
	}
	return fmt.Sprint(id.Int64)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	db, err := sql.Open("postgres", "sslmode=disable")
	must(err)
	setUp := os.Args[1] == "set-up"
	keep := func(id int64, other sql.NullInt64) []interface{} {
		var back sql.NullInt64
		var many []sql.NullInt64
		var found int
		must(db.QueryRow("INSERT INTO kept (id, many) VALUES ($1, $2) RETURNING id, many",
			id, pq.Array([]sql.NullInt64{{Int64: id, Valid: true}, other})).Scan(&back, pq.Array(&many)))
		must(db.QueryRow("SELECT count(*) FROM kept WHERE id = $1", back.Int64).Scan(&found))
		return []interface{}{text(back), []interface{}{text(many[0]), text(many[1])}, found}
	}
	var kept, read, written []interface{}
	for _, argument := range os.Args[2:] {
		id, err := strconv.ParseInt(argument, 10, 64)
		must(err)
		kept = append(kept, keep(id, sql.NullInt64{Int64: id, Valid: true}))
		var document []byte
		must(db.QueryRow("SELECT jsonb_build_object('id', $1::bigint)", id).Scan(&document))
		decoder := json.NewDecoder(bytes.NewReader(document))
		if setUp {
			decoder.UseNumber()
		}
		var parsed map[string]interface{}
		must(decoder.Decode(&parsed))
		read = append(read, fmt.Sprint(parsed["id"]))
		out, err := json.Marshal(map[string]interface{}{"id": id})
		must(err)
		var back string
		must(db.QueryRow("SELECT $1::jsonb ->> 'id'", string(out)).Scan(&back))
		written = append(written, back)
	}
	hole := keep(42, sql.NullInt64{})
	var null, made sql.NullInt64
	var found int
	must(db.QueryRow("INSERT INTO kept (id) VALUES ($1) RETURNING id", nil).Scan(&null))
	must(db.QueryRow("INSERT INTO made DEFAULT VALUES RETURNING id").Scan(&made))
	must(db.QueryRow("SELECT count(*) FROM made WHERE id = $1", made.Int64).Scan(&found))
	_, refused := db.Exec("SELECT flake_timestamp($1)", int64(-1))
	must(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"kept": kept, "hole": hole, "null": text(null), "read": read, "written": written,
		"made": []interface{}{text(made), found}, "error": []string{"Error", string(refused.(*pq.Error).Code)}, "many": nil,
	}))
}
