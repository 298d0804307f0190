//! `tollgate admin-key`: prints the admin key.

use serde_json::json;
use tollgate_config::Overrides;
use tollgate_storage::data_dir;

use super::common::{Common, Failed};

pub(super) fn run(common: &Common) -> Result<(), Failed> {
    let config = common.configuration(Overrides::default())?;
    let key = match &config.admin_key {
        Some(key) => key.clone(),
        None => {
            data_dir::create(&config.data_dir)?;
            data_dir::read_or_create_admin_key(&config.data_dir)?
        }
    };
    common.print(&json!({ "key": key.expose() }), || key.expose().to_owned())
}
