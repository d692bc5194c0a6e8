// Public IDs without the database, as flake_seal and flake_unseal make and open them.
import { createCipheriv, createDecipheriv } from "node:crypto";
import { InvalidID } from "./errors.js";

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const ZEROS = (1n << 58n) - 1n;
const toNumber = (block: Buffer) => BigInt(`0x${block.toString("hex")}`);
const toBlock = (number: bigint) => Buffer.from(number.toString(16).padStart(32, "0"), "hex");
const isMarked = (block: Buffer) => block.readUInt8(6) >> 4 === 8 && block.readUInt8(8) >> 6 === 2;

/** A key of flake_create_key: its name, and the 16 bytes of its secret. */
export class Key {
  private prefix: string;

  constructor(name: string, private secret: Uint8Array) {
    if (secret.length !== 16) throw new RangeError("a secret has 16 bytes");
    this.prefix = `${name}_`;
  }

  seal(id: bigint): string {
    const number = toNumber(this.sealed(id));
    const digits = Array.from({ length: 26 }, (_, n) => DIGITS.charAt(Number((number >> BigInt(125 - 5 * n)) & 31n)));
    return this.prefix + digits.join("");
  }

  /** Throws InvalidID if the text was not made with this key. */
  unseal(text: string): bigint {
    const digits = text.slice(this.prefix.length);
    if (!text.startsWith(this.prefix) || !/^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(digits)) throw new InvalidID("no public ID of this key");
    let number = 0n;
    for (const digit of digits) number = (number << 5n) | BigInt(DIGITS.indexOf(digit));
    return this.opened(toBlock(number));
  }

  sealUuid(id: bigint): string {
    return this.sealed(id).toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  /** Throws InvalidID if the UUID was not made with this key. */
  unsealUuid(uuid: string): bigint {
    const digits = uuid.replaceAll("-", "");
    if (!/^[0-9a-f]{32}$/i.test(digits)) throw new InvalidID("no UUID");
    return this.opened(Buffer.from(digits, "hex"));
  }

  private sealed(id: bigint): Buffer {
    const n = BigInt.asUintN(64, id);
    const plain = ((n >> 16n) << 80n) | (8n << 76n) | (((n >> 4n) & 0xfffn) << 64n) | (2n << 62n) | ((n & 15n) << 58n);
    return walk(createCipheriv("aes-128-ecb", this.secret, null).setAutoPadding(false), toBlock(plain));
  }

  private opened(block: Buffer): bigint {
    if (!isMarked(block)) throw new InvalidID("no public ID");
    const plain = toNumber(walk(createDecipheriv("aes-128-ecb", this.secret, null).setAutoPadding(false), block));
    if (plain & ZEROS) throw new InvalidID("no public ID of this key");
    return BigInt.asIntN(64, ((plain >> 80n) << 16n) | (((plain >> 64n) & 0xfffn) << 4n) | ((plain >> 58n) & 15n));
  }
}

function walk(cipher: { update(block: Buffer): Buffer }, block: Buffer): Buffer {
  do block = cipher.update(block);
  while (!isMarked(block));
  return block;
}
