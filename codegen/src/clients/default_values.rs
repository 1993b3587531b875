//! Derives `Default` for request types, so that callers write only the fields they need.

use std::collections::{BTreeMap, BTreeSet};

/// Adds `Default` to the derives of all structs whose fields have one.
pub(super) fn derive(module: &mut syn::ItemMod) {
    let Some((_, items)) = &mut module.content else {
        return;
    };
    let structs: BTreeMap<String, &syn::ItemStruct> = items
        .iter()
        .filter_map(|item| match item {
            syn::Item::Struct(item) => Some((item.ident.to_string(), item)),
            _ => None,
        })
        .collect();
    // From the leaves up, so that a type that requires itself gets no default.
    let mut known: BTreeSet<String> = BTreeSet::new();
    loop {
        let more = structs.iter().filter(|(name, item)| {
            let mut fields = item.fields.iter();
            !known.contains(*name) && fields.all(|field| has_default(&field.ty, &known))
        });
        let more: Vec<String> = more.map(|(name, _)| name.clone()).collect();
        if more.is_empty() {
            break;
        }
        known.extend(more);
    }
    let has_impl = |item: &syn::Item| match item {
        syn::Item::Impl(block) => block.trait_.as_ref().and_then(|(path, _)| {
            let is_default = path.segments.last()?.ident == "Default";
            is_default.then(|| last_name(&block.self_ty))?
        }),
        _ => None,
    };
    for name in items.iter().filter_map(has_impl) {
        known.remove(&name);
    }
    for item in items {
        if let syn::Item::Struct(item) = item
            && known.contains(&item.ident.to_string())
        {
            item.attrs.push(syn::parse_quote! { #[derive(Default)] });
        }
    }
}

/// Returns whether a type of a field has a default value, if those in `known` do.
fn has_default(ty: &syn::Type, known: &BTreeSet<String>) -> bool {
    let Some(name) = last_name(ty) else {
        return false;
    };
    match name.as_str() {
        "Maybe" | "Option" | "Vec" | "Map" | "BTreeMap" | "HashMap" | "String" | "Value"
        | "bool" => true,
        "Box" => argument(ty).is_some_and(|inner| has_default(inner, known)),
        name => known.contains(name),
    }
}

fn last_name(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

/// Returns the first type argument of a type.
fn argument(ty: &syn::Type) -> Option<&syn::Type> {
    let syn::Type::Path(path) = ty else {
        return None;
    };
    let syn::PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments
    else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
