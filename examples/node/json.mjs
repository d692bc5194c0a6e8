// JSON with IDs, which JSON.parse rounds and JSON.stringify refuses.
import JSONbig from "json-bigint";

// Integers that a number cannot hold become a BigInt.
export const { parse } = JSONbig({ useNativeBigInt: true });

// A BigInt becomes a text, which every reader keeps.
export const stringify = (value) => JSON.stringify(value, (key, field) => (typeof field === "bigint" ? String(field) : field));
