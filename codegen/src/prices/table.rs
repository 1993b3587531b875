//! The prices as a static table.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::quote;

use super::{Base, ByValue, Charged, Count, Kind, Pages, Price, Rate, Rule, Schedule, Unpriced};
use crate::error::{Error, Result};

/// Everything `prices.rs` holds.
pub fn table(prices: &BTreeMap<String, Price>, cost_path: &str) -> Result<syn::File> {
    let rows = prices.iter().map(|(name, price)| {
        let price = self::price(price);
        quote! { (#name, #price) }
    });
    let tokens = quote! {
        //! What the operations cost.

        use exa_mcp_model::MicroDollars;
        use exa_mcp_model::price::{
            Base, Charge, Count, Kind, PageCount, Pages, Price, Rate, Rule, Schedule,
        };

        /// Dotted path of the field that holds the cost of a response or of a finished run.
        pub static COST_PATH: &str = #cost_path;

        /// Prices by the name of the operation; sorted.
        pub static PRICES: &[(&str, Price)] = &[#(#rows),*];
    };
    syn::parse2(tokens).map_err(|error| Error::Client {
        file: "generated/prices.rs".to_owned(),
        pointer: String::new(),
        message: error.to_string(),
    })
}

fn price(price: &Price) -> TokenStream {
    match price {
        Price::Free => quote! { Price::Free },
        Price::Unpriced(Unpriced {
            why,
            charged,
            schedule,
        }) => {
            let (charge, schedule) = (charge(*charged), self::schedule(schedule.as_ref()));
            quote! { Price::Unpriced { why: #why, charge: #charge, schedule: #schedule } }
        }
        Price::Priced(rule) => {
            let rule = self::rule(rule);
            quote! { Price::Priced(#rule) }
        }
    }
}

fn rule(rule: &Rule) -> TokenStream {
    let base = match &rule.base {
        None => quote! { Base::Rate(Rate::Fixed(MicroDollars::ZERO)) },
        Some(Base::Fixed(price)) => {
            let price = money(*price);
            quote! { Base::Rate(Rate::Fixed(#price)) }
        }
        Some(Base::ByValue(by)) => by_value(by),
    };
    let pages = optional(rule.pages.as_ref().map(pages));
    let unpriced_with = &rule.unpriced_with;
    let (charge, schedule) = (charge(rule.charged), schedule(rule.schedule.as_ref()));
    quote! {
        Rule {
            base: #base,
            pages: #pages,
            unpriced_with: &[#(#unpriced_with),*],
            charge: #charge,
            schedule: #schedule,
        }
    }
}

fn by_value(by: &ByValue) -> TokenStream {
    let ByValue {
        by,
        default,
        prices,
    } = by;
    let rates = prices.iter().map(|(value, rate)| {
        let rate = optional(rate.as_ref().map(self::rate));
        quote! { (#value, #rate) }
    });
    quote! { Base::ByValue { argument: #by, default: #default, rates: &[#(#rates),*] } }
}

fn rate(rate: &Rate) -> TokenStream {
    match rate {
        Rate::Fixed(price) => {
            let price = money(*price);
            quote! { Rate::Fixed(#price) }
        }
        Rate::Metered(cap) => {
            let argument = &cap.metered;
            let [default, least, most] = [cap.default, cap.least, cap.most].map(money);
            quote! {
                Rate::Metered { cap: #argument, default: #default, least: #least, most: #most }
            }
        }
    }
}

fn pages(pages: &Pages) -> TokenStream {
    let count = match &pages.count {
        Some(count) => {
            let count = self::count(count);
            quote! { PageCount::Number(#count) }
        }
        None => {
            let lists = &pages.lists;
            quote! { PageCount::Lists(&[#(#lists),*]) }
        }
    };
    let (included, each, unasked) = (pages.included, money(pages.each), money(pages.unasked));
    let kinds = pages.kinds.iter().map(kind);
    let subpages = optional(pages.subpages.as_ref().map(self::count));
    quote! {
        Pages {
            count: #count,
            included: #included,
            each: #each,
            kinds: &[#(#kinds),*],
            unasked: #unasked,
            subpages: #subpages,
        }
    }
}

fn count(count: &Count) -> TokenStream {
    let argument = optional(count.argument.as_ref());
    let Count {
        default,
        least,
        most,
        ..
    } = count;
    quote! { Count { argument: #argument, default: #default, least: #least, most: #most } }
}

fn kind(kind: &Kind) -> TokenStream {
    let argument = optional(kind.argument.as_ref());
    let (each, included, assumed) = (money(kind.each), kind.included, kind.assumed);
    quote! {
        Kind { argument: #argument, each: #each, included: #included, assumed: #assumed }
    }
}

fn charge(charged: Charged) -> TokenStream {
    match charged {
        Charged::Response => quote! { Charge::InResponse },
        Charged::EndOfRun => quote! { Charge::AtEndOfRun },
    }
}

fn schedule(schedule: Option<&Schedule>) -> TokenStream {
    optional(schedule.map(|schedule| match schedule {
        Schedule::Every(path) => quote! { Schedule::Every(#path) },
        Schedule::Cron(path) => quote! { Schedule::Cron(#path) },
    }))
}

/// Dollars in millionths, rounded up; the fraction that binary numbers add is not rounded.
fn money(dollars: f64) -> TokenStream {
    let exact = dollars * 1_000_000.0;
    let near = exact.round();
    let micro = if (exact - near).abs() < 1e-3 {
        near
    } else {
        exact.ceil()
    };
    // Checked before: a price is at most a thousand dollars.
    let literal = proc_macro2::Literal::u64_unsuffixed(micro as u64);
    quote! { MicroDollars::new(#literal) }
}

fn optional<T: quote::ToTokens>(value: Option<T>) -> TokenStream {
    match value {
        Some(value) => quote! { Some(#value) },
        None => quote! { None },
    }
}
