// database/sql with lib/pq: an ID is an int64.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/lib/pq"
)

func main() {
	db, err := sql.Open("postgres", "sslmode=disable")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)"); err != nil {
		log.Fatal(err)
	}

	// Many rows in one statement; their IDs increase.
	items := make([]string, 1000)
	for number := range items {
		items[number] = fmt.Sprint("cup ", number)
	}
	rows, err := db.Query("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id", pq.Array(items))
	if err != nil {
		log.Fatal(err)
	}
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			log.Fatal(err)
		}
		ids = append(ids, id)
	}
	var found int
	if err := db.QueryRow("SELECT count(*) FROM orders WHERE id = ANY ($1)", pq.Array(ids)).Scan(&found); err != nil {
		log.Fatal(err)
	}
	fmt.Println(found)

	var refused *pq.Error
	if _, err := db.Exec("SELECT flake_timestamp($1)", int64(-1)); errors.As(err, &refused) {
		fmt.Println(refused.Code, refused.Hint)
	}
}
