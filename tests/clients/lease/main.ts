// Runs examples/lease/lease.ts as main.py runs lease.py.
import { execFile } from "node:child_process";
import { readFileSync, writeSync } from "node:fs";
import { promisify } from "node:util";
import { Ids, Window, type Ask, type Row } from "./lease.js";

const NAMES = ["worker", "tick_from", "tick_until", "shift", "low", "count", "epoch", "tick", "now", "until", "wait"];
const toRow = (fields: string[]) => Object.fromEntries(NAMES.map((name, n) => [name, Number(fields[n])])) as Row;

function vectors() {
  let window = new Window();
  for (const line of readFileSync(0, "utf8").trimEnd().split("\n")) {
    const [kind, ...fields] = line.split(",");
    const [steady, wall, third] = fields.map(Number);
    let answer = line;
    if (kind === "window") window = new Window();
    if (kind === "answered") window.answered(toRow(fields.slice(3)), steady, wall, third);
    if (kind === "failed") window.failed(steady);
    if (kind === "id") answer = `id,${steady},${wall},${window.id(steady, () => wall) ?? ""}`;
    if (kind === "asks") {
      const ask = window.asks(steady, wall);
      answer = `asks,${steady},${wall},${ask === undefined ? "" : ask[0] === null ? "new" : ask.join(" ")}`;
    }
    console.log(answer);
  }
}

async function timed() {
  const now = Date.now() * 1000;
  const row = toRow([1, Math.floor(now / 1000), now, 22, 1 << 21, 1 << 21, 0, 1000, now, now + 1e10, 0].map(String));
  const ids = new Ids("fake", async () => row);
  let best = Infinity;
  for (let round = 0; round < 500; round++) {
    await ids.next();
    const began = performance.now();
    for (let n = 0; n < 2000; n++) await ids.next();
    best = Math.min(best, Math.round(((performance.now() - began) * 1e6) / 2000));
  }
  console.log(best);
}

async function load() {
  const say = (lines: string) => writeSync(1, lines);
  const ids = new Ids("twitter", async (layout: string, ...ask: Ask) => {
    const query = `SELECT ${NAMES} FROM flake_lease('${layout}', ${ask[0]}, ${ask[1]})`;
    const row = toRow((await promisify(execFile)("psql", ["-XAtqc", query])).stdout.trim().split("|"));
    if (!row.wait) say(`window ${row.worker} ${row.tick_from} ${row.tick_until}\n`);
    return row;
  });
  process.stdin.on("end", () => process.exit(0)).resume();
  for (;;) {
    let made = "";
    try {
      for (let n = 0; n < 10; n++) made += `${await ids.next()}\n`;
    } catch (problem) {
      made += `none ${Date.now() * 1000} ${(problem as Error).cause}`.replaceAll("\n", " ") + "\n";
    }
    say(made);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

void { vectors, time: timed, load }[process.argv[2] as "load"]();
