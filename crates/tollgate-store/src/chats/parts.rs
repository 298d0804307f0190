//! Parts of a chat that are charged separately from the five kinds of tokens: the provider's tools by their calls, cache writes that last an hour,
//! audio and images.

use serde_json::{Value, json};
use tollgate_core::{Amount, money};

/// One part: a number of units at a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPart {
    /// Its name in the price configuration.
    pub name: &'static str,
    /// The number of units: calls or tokens.
    pub units: u64,
    /// The price of `units_per_price` units.
    pub price: Amount,
    /// 1 for calls, 1,000,000 for tokens.
    pub units_per_price: u64,
}

impl ChatPart {
    /// Its cost, rounded half up to a billionth. `None` if that is out of range.
    pub fn cost(&self) -> Option<Amount> {
        cost(self.units, self.price.nanos(), self.units_per_price)
    }
}

/// The parts of a chat with their cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChatParts {
    cost: Amount,
    /// A JSON list of `[name, units, price in billionths, units of the price]`; empty without parts.
    column: String,
}

impl ChatParts {
    /// The parts and their cost. `None` if the cost is out of range.
    pub fn new(parts: &[ChatPart]) -> Option<Self> {
        let cost = sum(parts.iter().map(|part| part.cost().map(Amount::nanos)))?;
        let cells = |part: &ChatPart| {
            json!([
                part.name,
                part.units,
                part.price.nanos(),
                part.units_per_price
            ])
        };
        let column = match parts {
            [] => String::new(),
            parts => Value::from_iter(parts.iter().map(cells)).to_string(),
        };
        Some(Self { cost, column })
    }

    /// The total cost of the parts.
    pub fn cost(&self) -> Amount {
        self.cost
    }

    pub(crate) fn column(&self) -> &str {
        &self.column
    }
}

/// The cost of the parts in the column `parts`. `None` if the column is malformed or the cost is out of range.
pub(crate) fn cost_of_column(column: &str) -> Option<Amount> {
    if column.is_empty() {
        return Some(Amount::ZERO);
    }
    let parts: Vec<(String, u64, i64, u64)> = serde_json::from_str(column).ok()?;
    let costs = parts
        .iter()
        .map(|(_, units, price, per)| cost(*units, *price, *per).map(Amount::nanos));
    sum(costs)
}

fn cost(units: u64, price: i64, per: u64) -> Option<Amount> {
    if price < 0 || per == 0 {
        return None;
    }
    let per = i128::from(per);
    let nanos = (i128::from(units).checked_mul(price.into())? + per / 2) / per;
    in_range(i64::try_from(nanos).ok()?)
}

fn sum(costs: impl Iterator<Item = Option<i64>>) -> Option<Amount> {
    let mut total = 0_i64;
    for cost in costs {
        total = total.checked_add(cost?)?;
    }
    in_range(total)
}

fn in_range(nanos: i64) -> Option<Amount> {
    Some(Amount::from_nanos(nanos)).filter(|amount| *amount <= money::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_column_has_the_cost_of_the_parts() {
        let part = |units, nanos, units_per_price| ChatPart {
            name: "web_search",
            units,
            price: Amount::from_nanos(nanos),
            units_per_price,
        };
        for (parts, cost) in [
            (vec![], Some(0)),
            (vec![part(3, 10_000_000, 1)], Some(30_000_000)),
            (vec![part(1, 1, 1_000_000)], Some(0)),
            (vec![part(500_000, 1, 1_000_000), part(2, 5, 1)], Some(11)),
            (vec![part(1, -1, 1)], None),
            (vec![part(u64::MAX, i64::MAX, 1)], None),
            (vec![part(1, 1, 0)], None),
        ] {
            let cost = cost.map(Amount::from_nanos);
            let parts_with_cost = ChatParts::new(&parts);
            assert_eq!(
                parts_with_cost.as_ref().map(ChatParts::cost),
                cost,
                "{parts:?}"
            );
            if let Some(parts_with_cost) = parts_with_cost {
                assert_eq!(cost_of_column(parts_with_cost.column()), cost, "{parts:?}");
            }
        }
        assert_eq!(cost_of_column("[[1]]"), None);
    }
}
