// Runs examples/lease/lease.go as main.py runs lease.py.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"lease/lease"
)

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func row(fields []string) lease.Row {
	var n [11]int64
	for i := range n {
		n[i] = number(fields[i])
	}
	return lease.Row{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10]}
}

func vectors() {
	var window *lease.Window
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := lines.Text()
		f := strings.Split(line, ",")
		switch f[0] {
		case "window":
			window = &lease.Window{}
		case "answered":
			window.Answered(row(f[4:]), number(f[1]), number(f[2]), number(f[3]))
		case "failed":
			window.Failed(number(f[1]))
		case "id":
			line = strings.Join(f[:3], ",") + ","
			if id, made := window.ID(number(f[1]), func() int64 { return number(f[2]) }); made {
				line += fmt.Sprint(id)
			}
		case "asks":
			line = strings.Join(f[:3], ",") + ","
			if ask, due := window.Asks(number(f[1]), number(f[2])); due && ask.Worker == nil {
				line += "new"
			} else if due {
				line += fmt.Sprint(*ask.Worker, " ", *ask.Until)
			}
		}
		fmt.Println(line)
	}
}

func timed() {
	now := time.Now().UnixMicro()
	ids := lease.New("fake", time.Second, func(string, lease.Ask) (lease.Row, error) {
		return lease.Row{1, now / 1000, now, 22, 1 << 21, 1 << 21, 0, 1000, now, now + 1e10, 0}, nil
	})
	best := time.Hour
	for round := 0; round < 1000; round++ {
		ids.Next()
		began := time.Now()
		for n := 0; n < 10000; n++ {
			ids.Next()
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
	ids := lease.New("twitter", 5*time.Second, func(layout string, ask lease.Ask) (lease.Row, error) {
		worker, until := "NULL", "NULL"
		if ask.Worker != nil {
			worker, until = fmt.Sprint(*ask.Worker), fmt.Sprint(*ask.Until)
		}
		query := fmt.Sprintf(`SELECT worker, tick_from, tick_until, shift, low, count, epoch, tick, now, until, wait
			FROM flake_lease('%s', %s, %s)`, layout, worker, until)
		answer, err := exec.Command("psql", "-XAtqc", query).CombinedOutput()
		if err != nil {
			return lease.Row{}, fmt.Errorf("%s", answer)
		}
		r := row(strings.Split(strings.TrimSpace(string(answer)), "|"))
		if r.Wait == 0 {
			say <- fmt.Sprintf("window %d %d %d\n", r.Worker, r.TickFrom, r.TickUntil)
		}
		return r, nil
	})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for ; ; time.Sleep(20 * time.Millisecond) {
		made := ""
		for n := 0; n < 10; n++ {
			id, err := ids.Next()
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
	map[string]func(){"vectors": vectors, "time": timed, "load": load}[os.Args[1]]()
}
