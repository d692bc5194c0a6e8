// Runs the package of TypeScript as main.py runs the one of Python.
import { readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import pg from "pg";
import { FlakeError, Ids, InvalidID, Key } from "flake-ids";
import { Database } from "../node_modules/flake-ids/dist/database.js";

const lines = () => readFileSync(0, "utf8").trimEnd().split("\n");

function say(text: string) {
  // A pipe takes a part of a long text.
  for (let rest = Buffer.from(text); rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (problem) {
      if ((problem as { code?: string }).code !== "EAGAIN") throw problem;
    }
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

function unseal() {
  for (const line of lines()) {
    const [secret = "", text = ""] = line.split(",");
    try {
      console.log(new Key("usr", Buffer.from(secret, "hex")).unseal(Buffer.from(text, "hex").toString()).toString());
    } catch (problem) {
      console.log((problem as Error).constructor.name);
    }
  }
}

async function timed() {
  Database.prototype.batch = async (_, count) => Array.from({ length: count }, (_, n) => BigInt(n));
  const ids = new Ids("fake", () => new pg.Client(), { maxAge: Infinity, most: 100_000 });
  await ids.take(100_000);
  let best = Infinity;
  for (let round = 0; round < 500; round++) {
    await ids.next();
    const began = performance.now();
    for (let n = 0; n < 1000; n++) await ids.next();
    best = Math.min(best, Math.round(((performance.now() - began) * 1e6) / 1000));
  }
  console.log(best);
  await ids.close();
}

function opened() {
  const { MAX_AGE = "1", MOST = "10000", PATIENCE = "5" } = process.env;
  const options = { maxAge: Number(MAX_AGE || Infinity), most: Number(MOST), patience: Number(PATIENCE) };
  return new Ids("twitter", () => new pg.Client(), options);
}

async function many() {
  const ids = opened();
  const task = async () => {
    const made: bigint[] = [];
    for (let n = 0; n < 125_000; n++) made.push(await ids.next());
    return made;
  };
  const made = await Promise.all(Array.from({ length: 8 }, task));
  await ids.close();
  say(made.flat().join("\n") + "\n");
}

const requests: number[] = [];

function measure() {
  const { batch } = Database.prototype;
  Database.prototype.batch = async function (layout, count) {
    const began = performance.now();
    try {
      return await batch.call(this, layout, count);
    } finally {
      requests.push(Math.round((performance.now() - began) * 1000));
    }
  };
}

async function act(ids: Ids, command: string, count = 1, pause = 0) {
  if (command === "longest") return say(`longest ${Math.max(...requests)}\n`);
  if (command === "close") return ids.close();
  if (command === "try") return say(`${ids.tryNext() ?? "none"}\n`);
  if (command === "take") return say((await ids.take(count)).map((id) => `${id}\n`).join(""));
  for (let n = 0; n < count; n++) {
    const before = Math.round((performance.timeOrigin + performance.now()) * 1000);
    say(`${await ids.next()} ${before}\n`);
    if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function talk() {
  measure();
  const ids = opened();
  for await (const line of createInterface({ input: process.stdin })) {
    const [command = "", ...numbers] = line.split(" ");
    try {
      await act(ids, command, ...(numbers.map(Number) as [number, number]));
    } catch (problem) {
      if (!(problem instanceof FlakeError)) throw problem;
      const { code = "-" } = (problem.cause ?? {}) as { code?: string };
      say(`error ${problem.name} ${/^\w{5}$/.test(code) ? code : "-"}\n`);
    }
    say("done\n");
  }
}

void { seal, unseal, time: timed, many, talk }[process.argv[2] as "talk"]();
