//! The addresses that the gateway listens on: one for clients, and one each for metrics and operators if they are configured separately.

use std::sync::Arc;

use axum::Router;
use tokio::task::JoinHandle;
use tollgate_config::Config;

use crate::http::inherited_sockets::InheritedSockets;
use crate::http::server::{self, Listener, Options};
use crate::http::tls::ServerTls;
use crate::listener_role::ListenerRole;
use crate::router::GatewayService;
use crate::spawn::spawn;
use crate::state::App;

/// The listeners of the gateway.
pub struct Listeners {
    /// The listener for clients; without `admin`, for everybody.
    pub main: Listener,
    metrics: Option<Listener>,
    /// The listener for operators. `None` if they use `main`.
    pub admin: Option<Listener>,
    /// The certificates in use, which are replaced when their files change.
    pub certificates: Vec<ServerTls>,
}

impl Listeners {
    /// Binds every address, or takes the service manager's sockets.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn bind(config: &Config) -> Result<Self, String> {
        let mut inherited = InheritedSockets::from_env();
        let tls = config.tls.as_ref().map(ServerTls::load).transpose()?;
        let mut certificates = Vec::from_iter(tls.clone());
        let main = server::bind(&config.listen, inherited.take()?).await?;
        let metrics = match &config.metrics_listen {
            Some(address) => Some(server::bind(address, inherited.take_metrics()?).await?),
            None => None,
        };
        let admin = match &config.admin_listener {
            Some(settings) => {
                let tls = settings.tls.as_ref().map(ServerTls::load).transpose()?;
                certificates.extend(tls.clone());
                let admin = server::bind(&settings.listen, inherited.take_admin()?).await?;
                Some(admin.with_tls(tls))
            }
            None => None,
        };
        Ok(Self {
            main: main.with_tls(tls),
            metrics,
            admin,
            certificates,
        })
    }

    /// Serves all listeners until the gateway stops; the task ends when the requests of clients and operators have ended. `others` returns the routes
    /// outside the client API for a listener of that role. (It is no type parameter, so that the server is compiled in this crate.)
    pub fn serve(
        self,
        app: &Arc<App>,
        others: fn(&App, ListenerRole) -> Router<Arc<App>>,
    ) -> JoinHandle<()> {
        let drain = &app.stopping;
        if let Some(listener) = self.metrics {
            tracing::info!(address = %listener.address(), "metrics are served on a separate listener");
            let service = GatewayService::for_operations(app);
            let options = Options::for_operations(&app.config);
            let service_of = Box::new(move |peer| service.for_connection(peer));
            spawn(server::serve(listener, service_of, options, drain.clone()));
        }
        let role = match self.admin {
            Some(_) => ListenerRole::Clients,
            None => ListenerRole::Everybody,
        };
        let service = GatewayService::new(app, role, others(app, role));
        let service_of = Box::new(move |peer| service.for_connection(peer));
        let options = Options::from(&app.config);
        let clients = server::serve(self.main, service_of, options, drain.clone());
        let operators = self.admin.map(|listener| {
            tracing::info!(
                address = %listener.address(),
                url = app.console_url,
                "the admin API and the console are served on a separate listener"
            );
            let role = ListenerRole::Operators;
            let service = GatewayService::new(app, role, others(app, role));
            let service_of = Box::new(move |peer| service.for_connection(peer));
            let options = Options::for_admins(&app.config);
            server::serve(listener, service_of, options, drain.clone())
        });
        spawn(async move {
            match operators {
                Some(operators) => drop(tokio::join!(clients, operators)),
                None => clients.await,
            }
        })
    }
}
