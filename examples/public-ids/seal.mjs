// Public IDs of flake without the database: reads lines `secret,id,uuid,text` as tests/vectors/seal.csv has them, and writes them
// computed anew, the IDs that the UUIDs stand for where no ID is given.
import { createCipheriv, createDecipheriv } from "node:crypto";
import { createInterface } from "node:readline";

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const isMarked = (block) => block[6] >> 4 === 8 && block[8] >> 6 === 2;
const toNumber = (block) => BigInt(`0x${block.toString("hex")}`);

function walk(make, secret, block) {
  const cipher = make("aes-128-ecb", secret, null).setAutoPadding(false);
  do block = cipher.update(block);
  while (!isMarked(block));
  return block;
}

function seal(secret, id) {
  const n = BigInt.asUintN(64, id);
  const plain = ((n >> 16n) << 80n) | (8n << 76n) | (((n >> 4n) & 0xfffn) << 64n) | (2n << 62n) | ((n & 15n) << 58n);
  return walk(createCipheriv, secret, Buffer.from(plain.toString(16).padStart(32, "0"), "hex"));
}

function unseal(secret, block) {
  if (!isMarked(block)) return null;
  const plain = toNumber(walk(createDecipheriv, secret, block));
  const n = ((plain >> 80n) << 16n) | (((plain >> 64n) & 0xfffn) << 4n) | ((plain >> 58n) & 15n);
  return plain & ((1n << 58n) - 1n) ? null : BigInt.asIntN(64, n);
}

const text = (block) => Array.from({ length: 26 }, (_, n) => DIGITS[Number((toNumber(block) >> BigInt(125 - 5 * n)) & 31n)]).join("");

for await (const line of createInterface({ input: process.stdin })) {
  const [key, id, uuid] = line.split(",");
  const secret = Buffer.from(key, "hex");
  const block = id ? seal(secret, BigInt(id)) : Buffer.from(uuid.replaceAll("-", ""), "hex");
  const opened = unseal(secret, block);
  const spelt = block.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  console.log([key, opened ?? "", spelt, opened === null ? "" : text(block)].join());
}
