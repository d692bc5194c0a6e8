// A statement ends with a semicolon outside of quotes and comments.
const TOKEN = /[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$|--[^\n]*|\/\*.*?\*\/|[\w]+|./gsu

export function* statements(text) {
    let statement = '', isEmpty = true
    for (const [token] of text.matchAll(TOKEN)) {
        statement += token
        if (token === ';') {
            if (!isEmpty) yield statement.trim()
            ;[statement, isEmpty] = ['', true]
        } else if (!/^(\s|--|\/\*)/.test(token)) {
            isEmpty = false
        }
    }
    if (!isEmpty) yield statement.trim()
}
