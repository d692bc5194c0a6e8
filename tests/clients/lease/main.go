// Runs clients/go/lease.go as main.py runs the package of Python.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"lease/pgflake"
)

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func row(fields []string) pgflake.Row {
	var n [14]int64
	for i := range n {
		n[i] = number(fields[i])
	}
	return pgflake.Row{fields[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13]}
}

func vectors() {
	var window *pgflake.Window
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := lines.Text()
		f := strings.Split(line, ",")
		switch f[0] {
		case "window":
			window = &pgflake.Window{}
		case "answered":
			window.Answered(row(f[4:]), number(f[1]), number(f[2]), number(f[3]))
		case "failed":
			window.Failed(number(f[1]), number(f[2]))
		case "release":
			token, last := window.Release()
			line = fmt.Sprintf("release,%s,%s", positive(token), positive(last))
		case "id":
			line = strings.Join(f[:3], ",") + ","
			if id, made := window.ID(number(f[1]), func() int64 { return number(f[2]) }); made {
				line += fmt.Sprint(id)
			}
		case "asks":
			line = strings.Join(f[:3], ",") + ","
			if token, due := window.Asks(number(f[1]), number(f[2])); due && token == 0 {
				line += "new"
			} else if due {
				line += positive(token)
			}
		}
		fmt.Println(line)
	}
}

func seal() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := strings.Split(lines.Text(), ",")
		secret, _ := hex.DecodeString(line[0])
		key, err := pgflake.NewKey("usr", secret)
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

func positive(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

type lessor func(layout string, token int64) (pgflake.Row, error)

func (l lessor) Lease(_ context.Context, layout string, token int64) (pgflake.Row, error) {
	return l(layout, token)
}
func (l lessor) Release(context.Context, string, int64, int64) error { return nil }
func (l lessor) Close() error                                        { return nil }

func timed() {
	now := time.Now().UnixMicro()
	ids := pgflake.New("fake", lessor(func(string, int64) (pgflake.Row, error) {
		return pgflake.Row{"", 0, 1, 1, now / 1000, now, 22, 1 << 21, 0, 1 << 21, 0, 1000, now, now + 1e10}, nil
	}))
	best, background := time.Hour, context.Background()
	for round := 0; round < 1000; round++ {
		ids.Next(background)
		began := time.Now()
		for n := 0; n < 10000; n++ {
			ids.Next(background)
		}
		if took := time.Since(began) / 10000; took < best {
			best = took
		}
	}
	fmt.Println(best.Nanoseconds())
}

func load() {
	say := make(chan string)
	go func() {
		for lines := range say {
			os.Stdout.WriteString(lines)
		}
	}()
	ids := pgflake.New("twitter", lessor(func(layout string, token int64) (pgflake.Row, error) {
		query := fmt.Sprintf(`SELECT reason, wait, token, worker, tick_from, tick_until, shift, low, step, count, epoch, tick, now, until
			FROM flake_lease('%s', nullif(%d::bigint, 0))`, layout, token)
		answer, err := exec.Command("psql", "-XAtqc", query).CombinedOutput()
		if err != nil {
			return pgflake.Row{}, fmt.Errorf("%s", answer)
		}
		r := row(strings.Split(strings.TrimSpace(string(answer)), "|"))
		if r.Reason == "" {
			say <- fmt.Sprintf("window %d %d %d %d\n", r.Low, r.TickFrom, r.TickUntil, r.Count)
		}
		return r, nil
	}))
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for ; ; time.Sleep(20 * time.Millisecond) {
		made := ""
		for n := 0; n < 10; n++ {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			id, err := ids.Next(ctx)
			cancel()
			if err != nil {
				made += strings.ReplaceAll(fmt.Sprint("none ", time.Now().UnixMicro(), " ", err), "\n", " ") + "\n"
				break
			}
			made += fmt.Sprintln(id)
		}
		say <- made
	}
}

func main() {
	map[string]func(){"vectors": vectors, "seal": seal, "time": timed, "load": load}[os.Args[1]]()
}
