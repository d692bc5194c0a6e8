export { Closed, FlakeError, InvalidID, Refused, Unavailable } from "./errors.js";
export { Ids, type Counters, type Options } from "./ids.js";
export { Key } from "./seal.js";
export type { Client, Connect, Pool } from "./database.js";
