//! Calls in the trees of expressions: their arguments, and the columns that the arguments stand for.

use flake_core::LONGEST_NAME;
use pgrx::pg_sys::RTEKind;

use crate::postgres::node_tree::{Place, Tree};

/// A table, and the number of a column.
pub type Column = (u32, i16);

/// The layout of a call that names none.
pub const DEFAULT: &str = "twitter";

/// Through how many queries a column is followed. A recursive query refers to itself.
const DEEPEST: usize = 50;

/// Returns the column of a table or view that an expression stands for. `table` is the table of variables outside of queries.
pub fn column(tree: &Tree<'_>, at: Place, table: u32) -> Option<Column> {
    follow(tree, at, table, DEEPEST)
}

fn follow(tree: &Tree<'_>, mut at: Place, table: u32, left: usize) -> Option<Column> {
    let left = left.checked_sub(1)?;
    while tree.text(at) == "RELABELTYPE" {
        at = tree.field(at, "arg")?;
    }
    let number: i16 = tree.number(at, "varattno")?;
    let nth = usize::try_from(number).ok()?.checked_sub(1)?;
    let Some(query) = query(tree, at, tree.number(at, "varlevelsup")?) else {
        return (table != 0).then_some((table, number));
    };
    let from = tree.list(query, "rtable").nth(tree.number::<usize>(at, "varno")?.checked_sub(1)?)?;
    let below = match tree.number::<RTEKind::Type>(from, "rtekind")? {
        RTEKind::RTE_RELATION => return Some((tree.number(from, "relid")?, number)),
        RTEKind::RTE_SUBQUERY => output(tree, tree.field(from, "subquery")?, number)?,
        RTEKind::RTE_JOIN => tree.list(from, "joinaliasvars").nth(nth)?,
        RTEKind::RTE_CTE => {
            let name = |place| tree.field(place, "ctename").map(|name| tree.text(name));
            let query = self::query(tree, from, tree.number(from, "ctelevelsup")?)?;
            let expression = tree.list(query, "cteList").find(|&expression| name(expression) == name(from))?;
            output(tree, tree.field(expression, "ctequery")?, number)?
        }
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        RTEKind::RTE_GROUP => tree.list(from, "groupexprs").nth(nth)?,
        _ => return None,
    };
    follow(tree, below, table, left)
}

/// Returns the query around a place, a number of levels up.
fn query(tree: &Tree<'_>, at: Place, levels: usize) -> Option<Place> {
    std::iter::successors(Some(at), |&place| tree.above(place))
        .skip(1)
        .filter(|&place| tree.text(place) == "QUERY")
        .nth(levels)
}

/// Returns the expression that a query returns in a column.
fn output(tree: &Tree<'_>, query: Place, number: i16) -> Option<Place> {
    let target = tree.list(query, "targetList").find(|&target| tree.number(target, "resno") == Some(number))?;
    tree.field(target, "expr")
}

/// Returns an argument of a call by its number or by its name.
pub fn argument(tree: &Tree<'_>, call: Place, number: usize) -> Option<Place> {
    let (named, plain): (Vec<_>, Vec<_>) =
        tree.list(call, "args").partition(|&place| tree.text(place) == "NAMEDARGEXPR");
    let named = || named.into_iter().find(|&place| tree.number(place, "argnumber") == Some(number));
    plain.get(number).copied().or_else(|| tree.field(named()?, "arg"))
}

/// Returns the layout that a call names in an argument, or None if that is not a constant.
pub fn layout(tree: &Tree<'_>, call: Place, number: usize) -> Option<String> {
    let Some(mut at) = argument(tree, call, number) else { return Some(DEFAULT.to_owned()) };
    while tree.text(at) == "RELABELTYPE" {
        at = tree.field(at, "arg")?;
    }
    // A text follows its length of four bytes. If it is longer than a name can be, it does not name a layout.
    let name = tree.bytes(at)?.get(4..)?.to_vec();
    String::from_utf8(name).ok().filter(|name| name.len() <= LONGEST_NAME)
}
