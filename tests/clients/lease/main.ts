// Runs the package of TypeScript as main.py runs the one of Python.
import { execFile } from "node:child_process";
import { readFileSync, writeSync } from "node:fs";
import { promisify } from "node:util";
import { Ids, InvalidID, Key } from "pgflake";
import { Database } from "../node_modules/pgflake/dist/database.js";
import { toRow, Window, type Row } from "../node_modules/pgflake/dist/window.js";

const NAMES = "reason wait token worker tick_from tick_until shift low step count epoch tick now until".split(" ");
const row = (fields: string[]): Row => toRow(Object.fromEntries(NAMES.map((name, n) => [name, fields[n] || null])));
const lines = () => readFileSync(0, "utf8").trimEnd().split("\n");

function vectors() {
  let window = new Window();
  for (const line of lines()) {
    const [kind, ...fields] = line.split(",");
    const [first = 0, second = 0, third = 0] = fields.map(Number);
    let answer = line;
    if (kind === "window") window = new Window();
    if (kind === "answered") window.answered(row(fields.slice(3)), first, second, third);
    if (kind === "failed") window.failed(first, second);
    if (kind === "release") answer = ["release", ...window.release().map((one) => one ?? "")].join();
    if (kind === "id") answer = `id,${first},${second},${window.id(first, () => second) ?? ""}`;
    if (kind === "asks") answer = `asks,${first},${second},${window.asks(first, second) ? (window.token ?? "new") : ""}`;
    console.log(answer);
  }
}

function seal() {
  for (const line of lines()) {
    const [secret = "", id, uuid = ""] = line.split(",");
    const key = new Key("usr", Buffer.from(secret, "hex"));
    const sealed = id ? key.sealUuid(BigInt(id)) : uuid;
    try {
      const opened = key.unsealUuid(sealed);
      const text = key.seal(opened);
      if (key.unseal(text) !== opened) throw new Error(text);
      console.log([secret, opened, sealed, text.slice(4)].join());
    } catch (problem) {
      if (!(problem instanceof InvalidID)) throw problem;
      console.log([secret, "", sealed, ""].join());
    }
  }
}

const none = { connect: () => { throw new Error("nobody connects"); } };

async function timed() {
  const now = Date.now() * 1000;
  const granted = row(["", 0, 1, 1, Math.floor(now / 1000), now, 22, 1 << 21, 0, 1 << 21, 0, 1000, now, now + 1e10].map(String));
  Database.prototype.lease = async () => granted;
  const ids = new Ids("fake", none);
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
  Database.prototype.lease = async (layout, token) => {
    const query = `SELECT ${NAMES} FROM flake_lease('${layout}', ${token ?? "NULL"}::bigint)`;
    const granted = row((await promisify(execFile)("psql", ["-XAtqc", query])).stdout.trim().split("|"));
    if (!granted.reason) say(`window ${granted.low} ${granted.tick_from} ${granted.tick_until} ${granted.count}\n`);
    return granted;
  };
  const ids = new Ids("twitter", none);
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

void { vectors, seal, time: timed, load }[process.argv[2] as "load"]();
