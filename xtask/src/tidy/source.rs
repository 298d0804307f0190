//! Reads Rust source: string literals with their lines (including those inside macros), and the lines that are tests.

use std::ops::RangeInclusive;

use proc_macro2::{Literal, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// One string literal: its line and its value.
pub(super) type Text = (usize, String);

/// The string literals of a Rust file, except those of doc comments.
pub(super) fn strings(text: &str) -> Vec<Text> {
    let mut found = Vec::new();
    if let Ok(tokens) = text.parse::<TokenStream>() {
        collect(tokens, &mut found);
    }
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Text>) {
    let mut before: Option<TokenTree> = None;
    for tree in tokens {
        match &tree {
            TokenTree::Literal(literal) => found.extend(string(literal)),
            TokenTree::Group(group) => {
                if !(follows_hash(before.as_ref()) && is_doc(&group.stream())) {
                    collect(group.stream(), found);
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        before = Some(tree);
    }
}

/// Whether the group after `before` belongs to an attribute: `#[…]` or `#![…]`.
fn follows_hash(before: Option<&TokenTree>) -> bool {
    matches!(before, Some(TokenTree::Punct(p)) if matches!(p.as_char(), '#' | '!'))
}

/// Whether the content of an attribute is that of a doc comment: `doc = "…"`.
pub(super) fn is_doc(attribute: &TokenStream) -> bool {
    let mut tokens = attribute.clone().into_iter();
    matches!(tokens.next(), Some(TokenTree::Ident(word)) if word == "doc")
        && matches!(tokens.next(), Some(TokenTree::Punct(sign)) if sign.as_char() == '=')
}

fn string(literal: &Literal) -> Option<Text> {
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) => Some((literal.span().start().line, text.value())),
        _ => None,
    }
}

/// Whether one of the attributes makes its item a part of the tests.
pub(super) fn marks_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_test = path.segments.last().is_some_and(|s| s.ident == "test");
        is_test || (path.is_ident("cfg") && names_test(attribute))
    })
}

fn names_test(attribute: &syn::Attribute) -> bool {
    match &attribute.meta {
        syn::Meta::List(list) => {
            let inside = list.tokens.to_string();
            let mut words = inside.split(|c: char| !c.is_alphanumeric());
            words.any(|word| word == "test") && !inside.starts_with("not")
        }
        _ => false,
    }
}

/// The lines of a Rust file that belong to tests.
pub(super) fn test_lines(file: &syn::File) -> Vec<RangeInclusive<usize>> {
    let mut finder = TestLines(Vec::new());
    finder.visit_file(file);
    finder.0
}

struct TestLines(Vec<RangeInclusive<usize>>);

impl TestLines {
    fn note(&mut self, attributes: &[syn::Attribute], span: proc_macro2::Span) -> bool {
        let is_test = marks_test(attributes);
        if is_test {
            self.0.push(span.start().line..=span.end().line);
        }
        is_test
    }
}

impl<'ast> Visit<'ast> for TestLines {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !self.note(&item.attrs, item.span()) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.attrs, item.span());
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !self.note(&item.attrs, item.span()) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.attrs, item.span());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_inside_macros_and_not_in_doc_comments() {
        let text = "/// \"no\"\nfn f() { g!(\"one\", [r#\"two\"#]); }\n#[cfg(feature = \"three\")]\nfn g() {}";
        let expected = [(2, "one"), (2, "two"), (3, "three")].map(|(l, t)| (l, t.to_owned()));
        assert_eq!(strings(text), expected);
    }

    #[test]
    fn lines_of_tests_are_known() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n#[cfg(not(test))]\nfn b() {}\n#[tokio::test]\nasync fn c() {\n}";
        let file = syn::parse_file(text).expect("valid Rust");
        assert_eq!(test_lines(&file), [2..=4, 7..=9]);
    }
}
