//go:build ignore

// An application that knows the ID of an order before it inserts the row.
package main

import (
	"database/sql"
	"fmt"
	"log"
	"time"

	"lease"

	_ "github.com/lib/pq"
)

func main() {
	db, err := sql.Open("postgres", "")
	if err != nil {
		log.Fatal(err)
	}
	ids := lease.New("twitter", 5*time.Second, lease.From(db))

	order, err := ids.Next()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO orders (id, item) VALUES ($1, 'tea')", order); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order)
}
