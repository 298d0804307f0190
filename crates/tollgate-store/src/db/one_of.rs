//! Conditions for filters of lists: a column has one of several values.

/// The values of a filter as a JSON array for the statements of [`one_of`]; `None` if the filter is not set.
pub(crate) fn list_arg(values: Option<&Vec<String>>) -> Option<String> {
    values.map(|values| serde_json::json!(values).to_string())
}

/// A condition: the column has one of the values of a JSON array, or the parameter is null.
macro_rules! one_of {
    ($database:ident $column:literal $parameter:literal) => {
        $crate::db::one_of!($database ($column) $parameter)
    };
    (sqlite ($($column:tt)+) $parameter:literal) => {
        concat!(
            "(",
            $parameter,
            " IS NULL OR ",
            $($column)+,
            " IN (SELECT value FROM json_each(",
            $parameter,
            ")))"
        )
    };
    (postgres ($($column:tt)+) $parameter:literal) => {
        concat!(
            "(CAST(",
            $parameter,
            " AS TEXT) IS NULL OR ",
            $($column)+,
            " = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST(",
            $parameter,
            " AS TEXT) AS json)))))"
        )
    };
}
pub(crate) use one_of;
