//! Temporary.
#![allow(missing_docs)]
pub mod path {
    #[derive(Clone, Copy)]
    pub enum Method {
        Generate,
        Stream,
        Count,
    }
    pub struct Call {
        pub model: String,
        pub method: Method,
    }
    pub fn parse(p: &str) -> Result<Call, String> {
        let (m, x) = p.rsplit_once(':').ok_or("no")?;
        let method = match x {
            "generateContent" => Method::Generate,
            "streamGenerateContent" => Method::Stream,
            _ => Method::Count,
        };
        Ok(Call {
            model: m.to_owned(),
            method,
        })
    }
}
pub fn read_count(_: &[u8]) -> Result<tollgate_chat::hub::Request, tollgate_chat::Bad> {
    Err(tollgate_chat::Bad::body("x"))
}
pub fn count_reply(_: u64) -> Vec<u8> {
    Vec::new()
}
