//go:build ignore

// An application that knows the ID of an order before it inserts the row.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"flakeids"

	_ "github.com/jackc/pgx/v4/stdlib"
)

func main() {
	db, err := sql.Open("pgx", "")
	if err != nil {
		log.Fatal(err)
	}
	ids := flakeids.New("twitter", flakeids.From(db), flakeids.Options{})
	defer ids.Close()

	order, err := ids.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO orders (id, item) VALUES ($1, 'tea')", order); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order)
}
