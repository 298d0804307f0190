//! Where a request is followed: fal says it in the answer to the submission, as three URLs.

use url::Url;

/// Places of one request: URLs, or paths behind the channel's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) status: String,
    pub(super) response: String,
    pub(super) cancel: String,
}

impl Place {
    fn each(self, change: impl Fn(String) -> String) -> Self {
        Self {
            status: change(self.status),
            response: change(self.response),
            cancel: change(self.cancel),
        }
    }

    /// The places as paths behind `base`. The key goes where the operator said, whatever origin the answer names; a base
    /// with a path of its own (a proxy) keeps it.
    pub(super) fn within(self, base: &str) -> Self {
        let own = Url::parse(base).ok();
        self.each(|text| {
            let Ok(url) = Url::parse(&text) else {
                return text;
            };
            let mut path = url.path().to_owned();
            if let Some(query) = url.query() {
                path = format!("{path}?{query}");
            }
            let own = own.as_ref().filter(|own| own.origin() == url.origin());
            let prefix = own.map_or("", |own| own.path().trim_end_matches('/'));
            let rest = path
                .strip_prefix(prefix)
                .filter(|rest| rest.starts_with('/'));
            rest.unwrap_or(&path).to_owned()
        })
    }

    /// The URLs on `base`.
    pub(super) fn on(self, base: &str) -> Self {
        self.each(|path| [base, &path].concat())
    }

    /// One text for all: the response's path alone where the others are built on it as usual.
    pub(super) fn ticket(&self) -> String {
        if *self == Self::usual(&self.response) {
            return self.response.clone();
        }
        [&*self.status, &self.response, &self.cancel].join(" ")
    }

    pub(super) fn of_ticket(ticket: &str) -> Self {
        let mut paths = ticket.split(' ').map(str::to_owned);
        match (paths.next(), paths.next(), paths.next()) {
            (Some(status), Some(response), Some(cancel)) => Self {
                status,
                response,
                cancel,
            },
            _ => Self::usual(ticket),
        }
    }

    fn usual(response: &str) -> Self {
        Self {
            status: format!("{response}/status"),
            response: response.to_owned(),
            cancel: format!("{response}/cancel"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(origin: &str) -> Place {
        Place::usual(&format!("{origin}/fal-ai/x/requests/1"))
    }

    #[test]
    fn places_stay_on_the_channels_base() {
        for (origin, base, expected) in [
            (
                "https://queue.fal.run",
                "https://queue.fal.run",
                "/fal-ai/x/requests/1",
            ),
            (
                "https://other.example",
                "https://queue.fal.run",
                "/fal-ai/x/requests/1",
            ),
            (
                "https://p.example/fal",
                "https://p.example/fal",
                "/fal-ai/x/requests/1",
            ),
            (
                "https://queue.fal.run",
                "https://p.example/fal",
                "/fal-ai/x/requests/1",
            ),
        ] {
            let within = place(origin).within(base);
            assert_eq!(within.response, expected, "{origin} {base}");
            let on = within.on(base);
            assert_eq!(on.status, format!("{base}{expected}/status"));
            assert_eq!(on.cancel, format!("{base}{expected}/cancel"));
        }
    }

    #[test]
    fn a_ticket_is_read_as_it_was_written() {
        let usual = place("");
        assert_eq!(usual.ticket(), "/fal-ai/x/requests/1");
        let odd = Place {
            status: "/a?b=1".to_owned(),
            response: "/c".to_owned(),
            cancel: "/d".to_owned(),
        };
        for place in [usual, odd] {
            assert_eq!(Place::of_ticket(&place.ticket()), place);
        }
    }
}
