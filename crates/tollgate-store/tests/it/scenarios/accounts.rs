//! Commands of users and keys.

use tollgate_core::{Secret, id};
use tollgate_store::RateLimits;

use super::{Fixture, Step, ok, outcome, since};
use crate::fixtures::{NOW, TestAccount, amount, key_sums, new_key, user_sums};

impl Fixture<'_> {
    /// - `user NAME BALANCE|unlimited [quota=]` creates a user with a key.
    /// - `key USER NAME [quota=]` creates another key; of an unknown user, or of `missing-user` or `missing-key`, an account that is not there.
    /// - `credit USER AMOUNT` shows the balance; `disable USER` and `revoke KEY` the time.
    /// - `sums KEY` shows the user's balance, held and used, and the key's held and used; `need KEY` whether its chats need a hold; `secret KEY FRESH` the webhook secret.
    pub(super) async fn account_step(&mut self, step: &Step<'_>) -> String {
        let (first, second) = (step.args[0], step.args.get(1).copied());
        let store = self.store.clone();
        match step.command {
            "user" => {
                let unlimited = second == Some("unlimited");
                let balance = amount(second.filter(|_| !unlimited).unwrap_or("0"));
                let rates = RateLimits::default();
                let created = store
                    .create_user(first, unlimited, balance, rates, NOW)
                    .await;
                match created {
                    Ok(_) => self.add_key(first, first, step.option("quota")).await,
                    Err(error) => outcome(Err::<(), _>(error), ok),
                }
            }
            "key" => {
                self.add_key(first, second.unwrap(), step.option("quota"))
                    .await
            }
            "name" => {
                let mut account = self.account(first).clone();
                match second.unwrap() {
                    "missing-key" => account.key_id = id::short_id("key_"),
                    _ => account.user_id = id::short_id("user_"),
                }
                self.accounts.insert(second.unwrap().to_owned(), account);
                ok(())
            }
            "credit" => {
                let by = amount(second.unwrap());
                let credited = store.credit_user(first, by, Some("a gift"), NOW).await;
                outcome(credited, |user| user.balance.to_string())
            }
            "disable" => {
                let disabled = store.disable_user(first, step.now()).await;
                outcome(disabled, |user| since(user.disabled_at))
            }
            "secret" => {
                let key = &self.account(first).key_id;
                let fresh = Secret::new(second.unwrap());
                let secret = store.webhook_secret(key, fresh, NOW).await;
                outcome(secret, |secret| secret.expose().to_owned())
            }
            "revoke" => {
                let id = self.accounts.get(first).map_or(first, |key| &key.key_id);
                let revoked = store.revoke_key(id, step.now()).await;
                outcome(revoked, |key| since(key.revoked_at))
            }
            "sums" => {
                let account = self.account(first);
                let user = user_sums(&store, account).await.join(" ");
                format!("{user}, {}", key_sums(&store, account).await.join(" "))
            }
            _ => {
                let key = store
                    .key(&self.account(first).key_id)
                    .await
                    .unwrap()
                    .unwrap();
                format!(
                    "needs_hold={} unlimited={}",
                    key.needs_hold(),
                    key.user_unlimited
                )
            }
        }
    }

    async fn add_key(&mut self, user: &str, name: &str, quota: Option<&str>) -> String {
        let key = self.store.create_key(new_key(user, quota)).await;
        outcome(key, |key| {
            let account = TestAccount {
                name: user.to_owned(),
                user_id: key.user_id,
                key_id: key.id,
            };
            self.accounts.insert(name.to_owned(), account);
            ok(())
        })
    }
}
