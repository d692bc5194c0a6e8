// Runs clients/go/ids.go as main.py runs the package of Python.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"flakeids"

	_ "github.com/jackc/pgx/v4/stdlib"
)

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func seal() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := strings.Split(lines.Text(), ",")
		secret, _ := hex.DecodeString(line[0])
		key, err := flakeids.NewKey("usr", secret)
		if err != nil {
			panic(err)
		}
		var block [16]byte
		hex.Decode(block[:], []byte(strings.ReplaceAll(line[2], "-", "")))
		if line[1] != "" {
			block = key.SealUUID(number(line[1]))
		}
		opened, text := "", ""
		if id, err := key.UnsealUUID(block); err == nil {
			opened, text = fmt.Sprint(id), strings.TrimPrefix(key.Seal(id), "usr_")
			if again, err := key.Unseal("usr_" + text); err != nil || again != id {
				panic(text)
			}
		}
		fmt.Printf("%s,%s,%x-%x-%x-%x-%x,%s\n", line[0], opened, block[:4], block[4:6], block[6:8], block[8:10], block[10:], text)
	}
}

func unseal() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := strings.Split(lines.Text(), ",")
		secret, _ := hex.DecodeString(line[0])
		text, _ := hex.DecodeString(line[1])
		key, _ := flakeids.NewKey("usr", secret)
		if id, err := key.Unseal(string(text)); errors.Is(err, flakeids.ErrInvalidID) {
			fmt.Println("InvalidID")
		} else {
			fmt.Println(id)
		}
	}
}

type source func(ctx context.Context, layout string, count int) ([]int64, error)

func (s source) Batch(ctx context.Context, layout string, count int) ([]int64, error) {
	return s(ctx, layout, count)
}

func timed() {
	ids := flakeids.New("fake", source(func(_ context.Context, _ string, count int) ([]int64, error) {
		return make([]int64, count), nil
	}), flakeids.Options{MaxAge: time.Hour, Most: 2000000})
	background := context.Background()
	ids.Take(background, 2000000)
	best := time.Hour
	for round := 0; round < 1000; round++ {
		ids.Next(background)
		began := time.Now()
		for n := 0; n < 1000; n++ {
			ids.Next(background)
		}
		if took := time.Since(began) / 1000; took < best {
			best = took
		}
	}
	fmt.Println(best.Nanoseconds())
}

// A pool in transaction mode keeps no statement that a driver has prepared.
func open() *sql.DB {
	db, err := sql.Open("pgx", "statement_cache_mode=describe")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	db.SetConnMaxIdleTime(10 * time.Second)
	return db
}

func options() flakeids.Options {
	return flakeids.Options{
		MaxAge: seconds(variable("MAX_AGE", "1")), Most: int(number(variable("MOST", "10000"))), Patience: seconds(variable("PATIENCE", "5")),
	}
}

func many() {
	ids, all, mutex := flakeids.New("twitter", flakeids.From(open()), options()), sync.WaitGroup{}, sync.Mutex{}
	for n := 0; n < 8; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			var made strings.Builder
			for n := 0; n < 125000; n++ {
				id, err := ids.Next(context.Background())
				if err != nil {
					panic(err)
				}
				fmt.Fprintln(&made, id)
			}
			mutex.Lock()
			defer mutex.Unlock()
			os.Stdout.WriteString(made.String())
		}()
	}
	all.Wait()
}

func variable(name, otherwise string) string {
	if value, given := os.LookupEnv(name); given {
		return value
	}
	return otherwise
}

func seconds(text string) time.Duration {
	if text == "" {
		return -1
	}
	n, _ := strconv.ParseFloat(text, 64)
	return time.Duration(n * 1e9)
}

func state(err error) string {
	var problem interface{ SQLState() string }
	if errors.As(err, &problem) {
		return problem.SQLState()
	}
	return "-"
}

func say(err error) {
	switch err.(type) {
	case *flakeids.UnavailableError:
		fmt.Println("error Unavailable", state(err))
	case *flakeids.RefusedError:
		fmt.Println("error Refused", state(err))
	default:
		if err != flakeids.ErrClosed {
			panic(err)
		}
		fmt.Println("error Closed -")
	}
}

func talk() {
	db, longest := open(), int64(0)
	from := flakeids.From(db)
	ids := flakeids.New("twitter", source(func(ctx context.Context, layout string, count int) ([]int64, error) {
		began := time.Now()
		made, err := from.Batch(ctx, layout, count)
		if took := time.Since(began).Microseconds(); took > longest {
			longest = took
		}
		return made, err
	}), options())
	background := context.Background()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println("done") {
		words := append(strings.Fields(lines.Text()), "0", "0")
		count := int(number(words[1]))
		switch words[0] {
		case "longest":
			fmt.Println("longest", longest)
		case "close":
			ids.Close()
			db.Close()
		case "try":
			if id, made := ids.TryNext(); made {
				fmt.Println(id)
			} else {
				fmt.Println("none")
			}
		case "take":
			made, err := ids.Take(background, count)
			if err != nil {
				say(err)
			}
			for _, id := range made {
				fmt.Println(id)
			}
		default:
			for n := 0; n < count; n++ {
				before := time.Now().UnixMicro()
				id, err := ids.Next(background)
				if err != nil {
					say(err)
					break
				}
				fmt.Println(id, before)
				time.Sleep(time.Duration(number(words[2])) * time.Millisecond)
			}
		}
	}
}

func main() {
	map[string]func(){"seal": seal, "unseal": unseal, "time": timed, "many": many, "talk": talk}[os.Args[1]]()
}
