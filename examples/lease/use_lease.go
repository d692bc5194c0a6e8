//go:build ignore

// An application that knows the ID of an order before it inserts the row.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"pgflake"

	_ "github.com/jackc/pgx/v4/stdlib"
)

func main() {
	own, err := sql.Open("pgx", "application_name=pgflake")
	if err != nil {
		log.Fatal(err)
	}
	ids := pgflake.New("twitter", pgflake.From(own))
	defer ids.Close()
	db, err := sql.Open("pgx", "")
	if err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	order, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO orders (id, item) VALUES ($1, 'tea')", order); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order)
}
