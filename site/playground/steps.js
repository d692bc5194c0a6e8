// Which steps have to run before another one: those that make, or fill, a table or a view that it uses.
const MADE = /\bCREATE\s+(?:TABLE|VIEW)\s+(\w+)/gi
const FILLED = /\bINSERT\s+INTO\s+(\w+)/gi

const names = (pattern, sql) => [...sql.matchAll(pattern)].map(([, name]) => name.toLowerCase())

// Takes the texts of all steps in order, and returns the places of those that the one at a place needs, in order.
export function needed(texts, place) {
    const own = names(MADE, texts[place])
    const words = new Set((texts[place].toLowerCase().match(/\w+/g) ?? []).filter((word) => !own.includes(word)))
    const found = new Set()
    for (let before = place - 1; before >= 0; before--) {
        const gives = [...names(MADE, texts[before]), ...names(FILLED, texts[before])]
        if (gives.some((name) => words.has(name))) {
            found.add(before)
            for (const earlier of needed(texts, before)) found.add(earlier)
        }
    }
    return [...found].sort((one, other) => one - other)
}
