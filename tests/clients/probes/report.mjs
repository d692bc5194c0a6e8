// Reports what a client of Node does with IDs, as a line of JSON. Each probe is called with IDs as texts.
const [mode, ...ids] = process.argv.slice(2);
// Whether the client is set up as docs/how-to/clients.md says; "identity" is for a table with such a column.
export const setUp = mode === "set-up";
export const many = Array.from({ length: 10000 }, (_, number) => ({ item: String(number) }));
const text = (id) => (id === null ? null : String(id));

// `keep` returns what came back for an ID: itself, an array of it and another one, and how many rows were found by it; `insert` the
// rows of many objects, and `select` all that are in that table.
export async function report({ keep, keepNull, read, write, make, fail, insert, select }) {
  const strings = (function_) => async (...ids) => {
    const [id, many, count] = await function_(...ids);
    return [text(id), many.map(text), Number(count)];
  };
  const each = async (function_) => {
    const answers = [];
    for (const id of ids) answers.push(await function_(id).catch(String));
    return answers;
  };
  const [made, found] = await make();
  let right = null;
  if (insert) {
    const keys = (await insert(many)).map((row) => row.id);
    const items = new Map((await select()).map((row) => [row.id, row.item]));
    right = many.filter(({ item }, number) => items.get(keys[number]) === item).length;
  }
  const error = await fail().catch((error) => error);
  console.log(
    JSON.stringify({
      type: typeof made,
      kept: (await each(strings((id) => keep(id, id)))).map((row) => (Array.isArray(row) ? row : [row, [], 0])),
      hole: await strings(keep)("42", null).catch(String),
      null: await keepNull(),
      read: (await each(read)).map(text),
      written: await each(write),
      made: [text(made), Number(found)],
      error: [error.constructor.name, (error.cause ?? error).code],
      many: right,
    }),
  );
}
