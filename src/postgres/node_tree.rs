//! Parses the text of the trees in which PostgreSQL stores queries and expressions.
//!
//! Items are in the order of the text, so everything below an item follows it. Nothing here recurses, however deep a tree is.

/// A node, a list or a word, with its place in the tree and the field that it is a value of.
struct Item<'a> {
    /// The name of a node, such as `FUNCEXPR`; `(` for a list; otherwise the word.
    text: &'a str,
    /// The field of the node above, such as `args`; empty for an element of a list.
    field: &'a str,
    above: usize,
    /// The first item that is not below this one.
    end: usize,
}

/// The longest text that is read. The server would end if Rust could not allocate a longer one.
pub const LONGEST: usize = 1_000_000;
/// How many bytes of text one call reads. Any role can create expressions, and the caller of another role waits for this.
pub const MOST: usize = 100_000_000;

pub struct Tree<'a>(Vec<Item<'a>>);

/// The place of an item in a tree.
pub type Place = usize;

/// The meaning of a word that is not a bracket.
enum Next {
    /// The name of a node.
    Name,
    /// The value of a field, whatever it begins with.
    Value,
    /// The name of a field, or one more value.
    Any,
}

impl<'a> Tree<'a> {
    pub fn read(text: &'a str) -> Self {
        let mut items = vec![Item { text: "", field: "", above: 0, end: 0 }];
        let (mut above, mut field, mut next) = (0, "", Next::Any);
        for word in Words(text) {
            let place = items.len();
            match (word, &next) {
                (")" | "}", _) => {
                    items[above].end = place;
                    (above, next) = (items[above].above, Next::Any);
                }
                ("(" | "{", _) => {
                    items.push(Item { text: word, field, above, end: place });
                    (above, next) = (place, if word == "{" { Next::Name } else { Next::Any });
                }
                (_, Next::Name) => (items[above].text, next) = (word, Next::Any),
                (_, Next::Any) if word.starts_with(':') => {
                    (field, next) = (&word[1..], Next::Value);
                    continue;
                }
                _ => {
                    items.push(Item { text: word, field, above, end: place + 1 });
                    next = Next::Any;
                }
            }
            field = "";
        }
        items[0].end = items.len();
        Self(items)
    }

    /// The name of a node, or a word.
    pub fn text(&self, place: Place) -> &'a str {
        self.0[place].text
    }

    /// The nodes with this name, wherever they are.
    pub fn nodes(&self, name: &'static str) -> impl Iterator<Item = Place> {
        (1..self.0.len()).filter(move |&place| self.text(place) == name)
    }

    /// The items directly below.
    pub fn elements(&self, place: Place) -> impl Iterator<Item = Place> {
        let first = (place + 1 < self.0[place].end).then_some(place + 1);
        std::iter::successors(first, move |&last| Some(self.0[last].end).filter(|&next| next < self.0[place].end))
    }

    /// The value of a field; the first word if it has several.
    pub fn field(&self, place: Place, name: &str) -> Option<Place> {
        self.elements(place).find(|&below| self.0[below].field == name)
    }

    /// A field that is a number.
    pub fn number<T: std::str::FromStr>(&self, place: Place, name: &str) -> Option<T> {
        self.text(self.field(place, name)?).parse().ok()
    }

    /// The elements of a field that is a list.
    pub fn list(&self, place: Place, name: &str) -> impl Iterator<Item = Place> {
        self.field(place, name).into_iter().flat_map(|list| self.elements(list))
    }

    /// The nearest node above.
    pub fn above(&self, place: Place) -> Option<Place> {
        let above = |&place: &Place| Some(self.0[place].above);
        std::iter::successors(Some(self.0[place].above), above)
            .take_while(|&place| place > 0)
            .find(|&place| self.text(place) != "(")
    }

    /// The bytes of a constant.
    pub fn bytes(&self, place: Place) -> Option<Vec<u8>> {
        let words = self.elements(place).skip_while(|&word| self.text(word) != "[").skip(1);
        let bytes = words.map_while(|word| self.text(word).parse::<i16>().ok()).map(|byte| byte as u8);
        (self.text(place) == "CONST").then(|| bytes.collect())
    }
}

/// The words of a tree by PostgreSQL's rules: brackets are words, and a backslash escapes the next character.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let is_bracket = |byte| matches!(byte, b'(' | b')' | b'{' | b'}');
        let text = self.0.trim_start_matches([' ', '\n', '\t']);
        let mut is_escaped = false;
        let end = text.bytes().position(|byte| {
            let is_end = !is_escaped && (matches!(byte, b' ' | b'\n' | b'\t') || is_bracket(byte));
            is_escaped = !is_escaped && byte == b'\\';
            is_end
        });
        let (word, rest) = match end {
            Some(0) => text.split_at(1),
            Some(end) => text.split_at(end),
            None => (text, ""),
        };
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }
}
