//! The calls, with their arguments, and the constants in expressions and queries that the catalog stores.
#![allow(unsafe_code, reason = "reads nodes of stored expressions")]

use std::ffi::{CStr, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::ptr;

use pgrx::{PgSqlErrorCode, PgTryBuilder, is_a, pg_sys, varlena};

use super::expressions::{Walker, expression_tree_walker, strip_conversions};
use super::memory;
use super::nodes::elements;

/// The longest text that is read.
const MAX_TREE_BYTES: usize = 1_000_000;
/// How many bytes of text one reader reads. Any role can create expressions, and the caller of another role waits for this.
const MAX_BYTES: usize = 100_000_000;

/// A relation, and the number of a column.
pub type Column = (pg_sys::Oid, i16);

/// The longest constant that is kept. Names are shorter.
const LONGEST_CONSTANT: usize = 64;

pub enum Argument {
    /// The bytes of a text or a name, unless it is long.
    Constant(Vec<u8>),
    /// A column of a relation, not one of a query or a join.
    Column(Column),
    Other,
}

/// A call of a function, or of an operator, whose function and result are not said.
pub struct Call {
    pub function: pg_sys::Oid,
    pub result: pg_sys::Oid,
    /// The call converts a value.
    pub is_cast: bool,
    /// The arguments that are not left to their defaults, with their numbers.
    arguments: Vec<(usize, Argument)>,
}

impl Call {
    pub fn argument(&self, number: usize) -> Option<&Argument> {
        self.arguments.iter().find(|(of, _)| *of == number).map(|(_, argument)| argument)
    }
}

#[derive(Default)]
pub struct Content {
    pub calls: Vec<Call>,
    pub constants: Vec<Vec<u8>>,
}

pub struct Reader {
    left: usize,
}

impl Reader {
    pub fn new() -> Self {
        Self { left: MAX_BYTES }
    }

    /// Reads a tree whose variables outside of queries belong to `table`. Returns None if it is too long, if too many others were
    /// read before, or if it is too deep for the stack.
    ///
    /// # Safety It must be a pg_node_tree of the catalog, or one as text.
    pub unsafe fn read(&mut self, tree: pg_sys::Datum, table: pg_sys::Oid) -> Option<Content> {
        // SAFETY: as the caller promises. After an error, PostgreSQL frees the context with its parent. The error that is
        // caught comes from functions that only allocate memory.
        unsafe {
            let length = pg_sys::toast_raw_datum_size(tree);
            if length > MAX_TREE_BYTES.min(self.left) {
                return None;
            }
            self.left -= length;
            let outer = pg_sys::CurrentMemoryContext;
            let (first, most) = (pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize, pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize);
            let own = pg_sys::AllocSetContextCreateExtended(outer, c"stored tree".as_ptr(), 0, first, most);
            pg_sys::CurrentMemoryContext = own;
            let read =
                || Some(content(pg_sys::stringToNode(pg_sys::text_to_cstring(tree.cast_mut_ptr())).cast(), table));
            let content = PgTryBuilder::new(AssertUnwindSafe(read))
                .catch_when(PgSqlErrorCode::ERRCODE_STATEMENT_TOO_COMPLEX, |_| None)
                .execute();
            pg_sys::CurrentMemoryContext = outer;
            pg_sys::MemoryContextDelete(own);
            content
        }
    }
}

/// Returns the content of an expression, a query or a list of them.
///
/// # Safety It must be one as stored, or null.
pub unsafe fn content(tree: *mut pg_sys::Node, table: pg_sys::Oid) -> Content {
    let mut walk = Walk { table, query: ptr::null_mut(), found: Content::default(), is_refused: false };
    // SAFETY: as the caller promises; `step` gets `walk` back. If the stack is too deep, an error jumps only over frames of `step` and
    // PostgreSQL.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| step(tree, (&raw mut walk).cast())) };
    if walk.is_refused {
        memory::refuse();
    }
    walk.found
}

struct Walk {
    table: pg_sys::Oid,
    /// The innermost query around a node, if there is one.
    query: *mut pg_sys::Query,
    found: Content,
    /// The system refuses memory. The walk has ended before its end.
    is_refused: bool,
}

unsafe extern "C-unwind" fn step(node: *mut pg_sys::Node, walk: *mut c_void) -> bool {
    // SAFETY: by `content`, these are a node, or null where a node is optional, and the walk. The tag of a node tells its type.
    unsafe {
        let at = walk.cast::<Walk>();
        if node.is_null() {
            return false;
        }
        if is_a(node, pg_sys::NodeTag::T_Query) {
            let outer = (*at).query;
            (*at).query = node.cast();
            let is_over = query_tree_walker(node.cast(), step, walk, 0);
            (*at).query = outer;
            return is_over;
        }
        (*at).see(node);
        (*at).is_refused || expression_tree_walker(node, step, walk)
    }
}

/// Nothing here raises an error.
impl Walk {
    unsafe fn see(&mut self, node: *mut pg_sys::Node) {
        let Content { calls, constants } = &mut self.found;
        self.is_refused |= !memory::is_reserved() || calls.try_reserve(1).is_err() || constants.try_reserve(1).is_err();
        if self.is_refused {
            return;
        }
        // SAFETY: the tag of a node tells its type.
        unsafe {
            self.found.constants.extend(constant(node));
            if is_a(node, pg_sys::NodeTag::T_FuncExpr) {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                let arguments = elements(call.args).iter().enumerate().map(|(place, &node)| {
                    let named = node.cast::<pg_sys::NamedArgExpr>();
                    if is_a(node, pg_sys::NodeTag::T_NamedArgExpr) {
                        ((*named).argnumber as usize, self.argument((*named).arg.cast()))
                    } else {
                        (place, self.argument(node))
                    }
                });
                let (arguments, explicit) = (arguments.collect(), pg_sys::CoercionForm::COERCE_EXPLICIT_CALL);
                let is_cast = call.funcformat != explicit;
                self.found.calls.push(Call { function: call.funcid, result: call.funcresulttype, is_cast, arguments });
            } else if is_a(node, pg_sys::NodeTag::T_OpExpr) {
                let none = pg_sys::Oid::INVALID;
                self.found.calls.push(Call { function: none, result: none, is_cast: false, arguments: Vec::new() });
            }
        }
    }

    unsafe fn argument(&self, node: *mut pg_sys::Node) -> Argument {
        // SAFETY: it is an expression; the tag of a node tells its type.
        unsafe {
            let node = strip_conversions(node);
            if is_a(node, pg_sys::NodeTag::T_Var) {
                return self.column(&*node.cast()).map_or(Argument::Other, Argument::Column);
            }
            constant(node).map_or(Argument::Other, Argument::Constant)
        }
    }

    /// Returns the column of a relation that a variable of the innermost query is.
    unsafe fn column(&self, variable: &pg_sys::Var) -> Option<Column> {
        let mut relation = self.table;
        // SAFETY: the query is one around the variable.
        if let Some(query) = unsafe { self.query.as_ref() } {
            // SAFETY: these are entries of a query's range table.
            let entry = unsafe {
                let entries = elements(query.rtable);
                &*entries.get((variable.varno as usize).checked_sub(1)?)?.cast::<pg_sys::RangeTblEntry>()
            };
            relation = (entry.rtekind == pg_sys::RTEKind::RTE_RELATION).then_some(entry.relid)?;
        }
        (variable.varlevelsup == 0).then_some((relation, variable.varattno))
    }
}

/// Returns the bytes of a constant that is a text or a name, unless it is long.
unsafe fn constant(node: *mut pg_sys::Node) -> Option<Vec<u8>> {
    // SAFETY: the tag of a node tells its type, and a constant that is not NULL has a value of its type.
    unsafe {
        if !is_a(node, pg_sys::NodeTag::T_Const) || (*node.cast::<pg_sys::Const>()).constisnull {
            return None;
        }
        let constant = &*node.cast::<pg_sys::Const>();
        if constant.consttype == pg_sys::NAMEOID {
            return Some(CStr::from_ptr(constant.constvalue.cast_mut_ptr()).to_bytes().to_vec());
        }
        let value = constant.constvalue.cast_mut_ptr::<pg_sys::varlena>();
        let is_plain = constant.constlen == -1 && varlena::varatt_is_4b_u(value);
        let bytes = is_plain.then(|| varlena::varlena_to_byte_slice(value))?;
        (bytes.len() <= LONGEST_CONSTANT).then(|| bytes.to_vec())
    }
}

unsafe extern "C-unwind" {
    /// Unguarded, as [`expression_tree_walker`] is.
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
    fn query_tree_walker(query: *mut pg_sys::Query, walker: Walker, context: *mut c_void, flags: c_int) -> bool;
}
