//! Limits on connections: of all clients together, and of each client address, with a reserve for health checks and operators.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use futures_util::future::Either;
use http::{HeaderValue, Request, Version, header};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::server::graceful::GracefulConnection;
use ipnet::IpNet;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollgate_core::{ApiError, ErrorKind};

use super::client_address::is_in;
use super::reply::ErrorResponse;

/// How long a response may wait because the client reads none of it.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections beyond the maximum, which serve only health checks and operators.
const RESERVED: usize = 32;
/// Connections over the limit of their address that get an error response at the same time; further ones are closed without one.
const REJECTED: usize = 64;
/// The `retry-after`, in seconds, for a rejected client.
const RETRY_AFTER_S: u32 = 1;

/// The permits of connections.
pub(super) struct ConnectionLimits {
    general: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    rejected: Arc<Semaphore>,
    per_address: usize,
    trusted_proxies: Vec<IpNet>,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// Permission for a connection, until it is dropped.
pub(super) struct ConnectionPermit {
    /// Which requests are served on the connection.
    pub(super) access: Access,
    _permit: OwnedSemaphorePermit,
    _address: Option<AddressPermit>,
}

/// Which requests are served on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// All requests.
    Full,
    /// Only those to health checks and operators' endpoints, because all other connections are in use.
    Operators,
    /// None: the client address has too many connections.
    Rejected,
}

impl ConnectionLimits {
    /// At most `max` connections, of which each address has at most `per_address`, except for loopback and `trusted_proxies`.
    pub(super) fn new(max: usize, per_address: usize, trusted_proxies: Vec<IpNet>) -> Self {
        Self {
            general: Arc::new(Semaphore::new(max)),
            reserved: Arc::new(Semaphore::new(RESERVED)),
            rejected: Arc::new(Semaphore::new(REJECTED)),
            per_address,
            trusted_proxies,
            open: Arc::default(),
        }
    }

    /// Waits until another connection may be accepted.
    pub(super) async fn ready(&self) {
        tokio::select! {
            biased;
            _ = self.general.acquire() => {}
            _ = self.reserved.acquire() => {}
        }
    }

    /// The permit of a connection from `address` that has just been accepted. `None` if it must be closed without a response.
    pub(super) fn admit(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let (access, permits, address) = match self.count(address) {
            Err(()) => (Access::Rejected, &self.rejected, None),
            Ok(address) if self.general.available_permits() > 0 => {
                (Access::Full, &self.general, address)
            }
            Ok(address) => (Access::Operators, &self.reserved, address),
        };
        Some(ConnectionPermit {
            access,
            _permit: Arc::clone(permits).try_acquire_owned().ok()?,
            _address: address,
        })
    }

    /// Converts the permit of a proxy's connection to one of its client at `address`. `None` if the connection must be closed without a response: too
    /// many connections of clients at their limit are open.
    pub(super) fn for_client(
        &self,
        permit: ConnectionPermit,
        address: IpAddr,
    ) -> Option<ConnectionPermit> {
        match self.count(address) {
            Ok(counted) => Some(ConnectionPermit {
                _address: counted,
                ..permit
            }),
            // As for a direct connection: it must not occupy a permit of the others.
            Err(()) => Some(ConnectionPermit {
                access: Access::Rejected,
                _permit: Arc::clone(&self.rejected).try_acquire_owned().ok()?,
                _address: None,
            }),
        }
    }

    /// Counts a connection of an address: `Ok(None)` if the address has no limit, an error if it is at its limit.
    fn count(&self, address: IpAddr) -> Result<Option<AddressPermit>, ()> {
        let address = address.to_canonical();
        let is_trusted = is_in(address, &self.trusted_proxies);
        if address.is_loopback() || is_trusted {
            return Ok(None);
        }
        let address = client_network(address);
        let mut open = lock(&self.open);
        let count = open.entry(address).or_default();
        if *count >= self.per_address {
            return Err(());
        }
        *count += 1;
        Ok(Some(AddressPermit {
            address,
            open: Arc::clone(&self.open),
        }))
    }
}

/// The addresses that count as one client: an IPv4 address, or the /64 network of an IPv6 address, because one client can use all of it.
fn client_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// A connection that is included in the count of its address.
struct AddressPermit {
    address: IpAddr,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many connections may be open if the process may open `descriptors` file descriptors: a quarter is reserved for providers and files.
pub fn max_within_descriptors(configured: usize, descriptors: u64) -> usize {
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let available = descriptors - descriptors / 4;
    configured.min(available.saturating_sub(RESERVED + REJECTED).max(1))
}

/// A service that serves the requests which the connection's permit allows.
#[derive(Clone)]
pub(super) struct PermittedService<S> {
    pub(super) access: Access,
    pub(super) service: S,
}

impl<S> Service<Request<Incoming>> for PermittedService<S>
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response, Infallible>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let error = match self.access {
            Access::Full => return Either::Left(self.service.call(request)),
            Access::Operators if is_for_operators(request.uri().path()) => {
                return Either::Left(self.service.call(request));
            }
            Access::Operators => ApiError {
                retry_after: Some(RETRY_AFTER_S),
                ..ApiError::new(
                    ErrorKind::Unavailable,
                    "all connections of this gateway are in use: try again",
                )
            },
            Access::Rejected => ApiError {
                retry_after: Some(RETRY_AFTER_S),
                ..ApiError::new(
                    ErrorKind::RateLimit,
                    "too many connections from this address: reuse or close some",
                )
            },
        };
        let mut response = ErrorResponse::from(error).into_response();
        if request.version() != Version::HTTP_2 {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Either::Right(ready(Ok(response)))
    }
}

/// Whether a path is for supervisors and operators.
fn is_for_operators(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/metrics") || path.starts_with("/admin")
}

/// Runs a connection; when `closing` fires, it accepts no new requests and ends after those in flight.
pub(super) async fn close_gracefully<C: GracefulConnection>(
    mut connection: Pin<&mut C>,
    closing: impl Future<Output = ()>,
) -> Result<(), C::Error> {
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = closing => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// Logs the error of a connection. Its cause is the client, which left, was too slow, or does not use HTTP.
pub(super) fn log_end(error: &hyper::Error) {
    tracing::debug!(error = %error, "a connection ended with an error");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_by_client_address_except_for_loopback_and_proxies() {
        let trusted = vec!["192.0.2.0/24".parse().unwrap()];
        let limits = ConnectionLimits::new(100, 2, trusted);
        let admit = |address: &str| limits.admit(address.parse().unwrap()).unwrap();
        for (addresses, third) in [
            (["203.0.113.7"; 3], Access::Rejected),
            (
                ["203.0.113.8", "::ffff:203.0.113.8", "203.0.113.8"],
                Access::Rejected,
            ),
            (
                ["2001:db8::1", "2001:db8::2", "2001:db8::3:4"],
                Access::Rejected,
            ),
            (
                ["2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1"],
                Access::Full,
            ),
            (["192.0.2.9"; 3], Access::Full),
            (["127.0.0.1"; 3], Access::Full),
            (["::1"; 3], Access::Full),
        ] {
            let permits = addresses.map(admit);
            let access = permits.each_ref().map(|permit| permit.access);
            assert_eq!(access, [Access::Full, Access::Full, third], "{addresses:?}");
            drop(permits);
            assert_eq!(admit(addresses[0]).access, Access::Full, "they were closed");
        }
        assert!(lock(&limits.open).is_empty());
    }

    #[test]
    fn behind_a_proxy_a_client_at_its_limit_takes_no_permit_of_other_clients() {
        const CLIENT: &str = "203.0.113.7";
        let proxy: IpAddr = "192.0.2.9".parse().unwrap();
        let limits = ConnectionLimits::new(2, 1, vec![proxy.into()]);
        let open = |client: &str| {
            let accepted = limits.admit(proxy).unwrap();
            limits.for_client(accepted, client.parse().unwrap())
        };
        let first = open(CLIENT).unwrap();
        assert_eq!(first.access, Access::Full);
        let rejected: Vec<_> = (0..REJECTED).map(|_| open(CLIENT).unwrap()).collect();
        assert!(rejected.iter().all(|p| p.access == Access::Rejected));
        assert!(open(CLIENT).is_none(), "closed without a response");
        let other = open("203.0.113.8").unwrap();
        assert_eq!(other.access, Access::Full, "of the same proxy");
        drop(first);
        assert_eq!(open(CLIENT).unwrap().access, Access::Full);
    }

    #[test]
    fn connections_beyond_the_maximum_are_for_operators() {
        let limits = ConnectionLimits::new(1, 100, Vec::new());
        let admit = || limits.admit("203.0.113.7".parse().unwrap());
        let first = admit().unwrap();
        let reserved: Vec<_> = (0..RESERVED).map(|_| admit().unwrap()).collect();
        assert_eq!(first.access, Access::Full);
        assert!(reserved.iter().all(|p| p.access == Access::Operators));
        assert!(admit().is_none());
        drop(first);
        assert_eq!(admit().unwrap().access, Access::Full);
    }

    #[test]
    fn a_part_of_the_file_descriptors_is_kept_for_providers_and_files() {
        for (configured, descriptors, expected) in [
            (4_096, 1_048_576, 4_096),
            (4_096, 4_096, 2_976),
            (100, 1_024, 100),
            (4_096, 1_024, 672),
            (4_096, 64, 1),
            (4_096, u64::MAX, 4_096),
        ] {
            let max = max_within_descriptors(configured, descriptors);
            assert_eq!(max, expected, "{configured} of {descriptors}");
        }
    }
}
