//! The macro that defines the extension's errors.

/// Defines the errors. Each has its message and data, then its SQLSTATE, DETAIL and HINT; the hint may be empty.
macro_rules! errors {
    ($(
        $(#[$attribute:meta])+
        $name:ident $({ $($field:ident: $type:ty),+ })? => $sqlstate:expr, $detail:expr, $hint:expr;
    )+) => {
        /// An error of the extension.
        #[derive(Debug, thiserror::Error)]
        pub enum Error {
            #[error(transparent)]
            Core(#[from] flake_core::Error),
            #[error(transparent)]
            Horizon(#[from] Refusal),
            #[error(transparent)]
            Mark(#[from] Fault),
            #[error("cannot convert table {table}")]
            NotConvertible { table: String, why: Obstacle },
            $( $(#[$attribute])+ $name $({ $($field: $type),+ })?, )+
        }

        impl Error {
            /// The parts other than the message.
            #[allow(unused_variables, reason = "not all data are in DETAIL and HINT")]
            pub fn row(&self) -> Row {
                match self {
                    Self::Core(error) => Row::of_core(error),
                    Self::Horizon(refusal) => Row::of_refusal(*refusal),
                    Self::Mark(fault) => Row::of_fault(fault),
                    Self::NotConvertible { why, .. } => why.row(),
                    $( Self::$name $({ $($field),+ })? => Row::new($sqlstate, $detail, $hint), )+
                }
            }
        }
    };
}
pub(super) use errors;
