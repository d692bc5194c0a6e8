//! Calls in the trees of expressions: their arguments, and where the variables there come from.

use flake_core::LONGEST_NAME;
use pgrx::pg_sys::RTEKind;

use crate::postgres::node_tree::{Place, Tree};

/// A table, and the number of a column.
pub type Column = (u32, i16);

/// The layout that a call without one means.
pub const DEFAULT: &str = "twitter";

/// Where a variable comes from.
#[derive(Clone, Copy)]
pub enum Origin {
    Table(Column),
    View(u32, i16),
    Expression(Place),
}

/// Where an expression comes from; `table` is the one of variables outside of queries.
pub fn origin(tree: &Tree<'_>, mut at: Place, table: u32) -> Option<Origin> {
    while tree.text(at) == "RELABELTYPE" {
        at = tree.field(at, "arg")?;
    }
    let number: i16 = tree.number(at, "varattno")?;
    let nth = usize::try_from(number).ok()?.checked_sub(1)?;
    let Some(query) = query(tree, at, tree.number(at, "varlevelsup")?) else {
        return (table != 0).then_some(Origin::Table((table, number)));
    };
    let from = tree.list(query, "rtable").nth(tree.number::<usize>(at, "varno")?.checked_sub(1)?)?;
    match tree.number::<RTEKind::Type>(from, "rtekind")? {
        RTEKind::RTE_RELATION => {
            let relation = tree.number(from, "relid")?;
            let is_view = matches!(tree.text(tree.field(from, "relkind")?), "v" | "m");
            Some(if is_view { Origin::View(relation, number) } else { Origin::Table((relation, number)) })
        }
        RTEKind::RTE_SUBQUERY => output(tree, tree.field(from, "subquery")?, number).map(Origin::Expression),
        RTEKind::RTE_JOIN => tree.list(from, "joinaliasvars").nth(nth).map(Origin::Expression),
        RTEKind::RTE_CTE => {
            let name = |place| tree.field(place, "ctename").map(|name| tree.text(name));
            let query = self::query(tree, from, tree.number(from, "ctelevelsup")?)?;
            let expression = tree.list(query, "cteList").find(|&expression| name(expression) == name(from))?;
            output(tree, tree.field(expression, "ctequery")?, number).map(Origin::Expression)
        }
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        RTEKind::RTE_GROUP => tree.list(from, "groupexprs").nth(nth).map(Origin::Expression),
        _ => None,
    }
}

/// The query around a place, so many levels up.
fn query(tree: &Tree<'_>, at: Place, levels: usize) -> Option<Place> {
    std::iter::successors(Some(at), |&place| tree.above(place))
        .skip(1)
        .filter(|&place| tree.text(place) == "QUERY")
        .nth(levels)
}

/// The expression that a query returns in a column.
fn output(tree: &Tree<'_>, query: Place, number: i16) -> Option<Place> {
    let target = tree.list(query, "targetList").find(|&target| tree.number(target, "resno") == Some(number))?;
    tree.field(target, "expr")
}

/// An argument of a call, by its number or by its name.
pub fn argument(tree: &Tree<'_>, call: Place, number: usize) -> Option<Place> {
    let (named, plain): (Vec<_>, Vec<_>) =
        tree.list(call, "args").partition(|&place| tree.text(place) == "NAMEDARGEXPR");
    let named = || named.into_iter().find(|&place| tree.number(place, "argnumber") == Some(number));
    plain.get(number).copied().or_else(|| tree.field(named()?, "arg"))
}

/// The layout that a call names in an argument; none if it is no constant.
pub fn layout(tree: &Tree<'_>, call: Place, number: usize) -> Option<String> {
    let Some(mut at) = argument(tree, call, number) else { return Some(DEFAULT.to_owned()) };
    while tree.text(at) == "RELABELTYPE" {
        at = tree.field(at, "arg")?;
    }
    // A text is behind its length of four bytes. What is longer than a name is none.
    let name = tree.bytes(at)?.get(4..)?.to_vec();
    String::from_utf8(name).ok().filter(|name| name.len() <= LONGEST_NAME)
}
