export { Closed, FlakeError, InvalidID, NoLease, Refused } from "./errors.js";
export { Ids, type Counters, type Options } from "./ids.js";
export { Key } from "./seal.js";
export type { Client } from "./database.js";
