// What a client of Node does with IDs, as a line of JSON. Each probe is called with IDs as texts.
const [mode, ...ids] = process.argv.slice(2);
// Whether the client is set up as docs/clients.md says.
export const setUp = mode === "set-up";
const text = (id) => (id === null ? null : String(id));

// `keep` returns what came back for an ID: itself, an array of it and NULL, and how many rows were found by it.
export async function report({ keep, keepNull, read, write, make, fail }) {
  const each = async (function_) => {
    const answers = [];
    for (const id of ids) answers.push(await function_(id).catch((error) => ({ raised: error.name })));
    return answers;
  };
  const [made, found] = await make();
  const error = await fail().catch((error) => error.cause ?? error);
  console.log(
    JSON.stringify({
      type: typeof made,
      kept: (await each(keep)).map(([id, many, count]) => [text(id), many.map(text), Number(count)]),
      null: await keepNull(),
      read: (await each(read)).map((answer) => answer?.raised ?? text(answer)),
      written: await each(write),
      made: [text(made), Number(found)],
      error: [error.name, error.code],
    }),
  );
}
