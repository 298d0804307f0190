//! Prices of submissions: those of the configuration, and the built-in ones of wan2.7. A price is frozen at submission.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use tollgate_config::{Currency, ModelPrice, Source};
use tollgate_core::{Amount, ApiError, ErrorKind};
use tollgate_media::{ModelName, PriceFactors, Units};
use tollgate_store::Charge;

/// Unit prices of wan2.7, built in if the currency is CNY (docs/pricing.md).
const WAN_CNY: &[(&str, i64)] = &[
    ("wan2.7-image-pro", 500_000_000),
    ("wan2.7-image", 200_000_000),
];

/// The price of a model without one: everything is free.
static FREE: LazyLock<ModelPrice> = LazyLock::new(ModelPrice::default);

/// The price list.
pub struct Prices {
    by_model: HashMap<String, (ModelPrice, Source), RandomState>,
}

impl Prices {
    /// Merges the prices of the file, those of the database for other models, and built-in ones for models that have neither.
    pub fn new(
        file: &HashMap<String, ModelPrice>,
        database: HashMap<String, ModelPrice>,
        currency: Currency,
    ) -> Self {
        let built_in = WAN_CNY.iter().filter(|_| currency == Currency::Cny);
        let built_in = built_in.map(|(model, nanos)| {
            let price = ModelPrice::per_image(Amount::from_nanos(*nanos));
            ((*model).to_owned(), (price, Source::BuiltIn))
        });
        let mut by_model: HashMap<_, _, RandomState> = built_in.collect();
        let database = database.into_iter();
        by_model.extend(database.map(|(model, price)| (model, (price, Source::Database))));
        let file = file.iter();
        by_model.extend(file.map(|(model, price)| (model.clone(), (price.clone(), Source::File))));
        Self { by_model }
    }

    /// Every price with its model, by name, and where it is configured.
    pub fn sorted(&self) -> Vec<(&str, &ModelPrice, Source)> {
        let prices = self.by_model.iter();
        let mut prices: Vec<_> = prices
            .map(|(model, (price, source))| (model.as_str(), price, *source))
            .collect();
        prices.sort_unstable_by_key(|(model, ..)| *model);
        prices
    }

    /// Whether `model` has a price at all.
    pub fn has(&self, model: ModelName<'_>) -> bool {
        self.find(model).is_some()
    }

    /// The price that is set for the model's own name, else the one for its first name.
    fn find(&self, model: ModelName<'_>) -> Option<&ModelPrice> {
        let own = self.by_model.get(model.own);
        let price = own.or_else(|| self.by_model.get(model.first));
        price.map(|(price, _)| price)
    }

    /// The charge for `units` of `model`. A model without a price costs nothing.
    ///
    /// # Errors
    /// 500 if price × units is out of range for an amount: the configuration is wrong.
    pub fn charge(
        &self,
        model: ModelName<'_>,
        factors: &PriceFactors,
        units: Units,
    ) -> Result<Charge, ApiError> {
        let price = self.find(model).unwrap_or(&FREE);
        let charge = price.charge(factors, units);
        if charge.cost(charge.units).is_none() {
            tracing::error!(model = model.own, price = %charge.price, "the price of a submission is too large");
            return Err(ApiError::new(
                ErrorKind::Internal,
                "the price of this request cannot be computed",
            ));
        }
        Ok(charge)
    }

    /// The price of chats with `model`. A model without a price costs nothing.
    pub fn chat(&self, model: ModelName<'_>) -> &ModelPrice {
        self.find(model).unwrap_or(&FREE)
    }
}
