//! Imports of a source file: `use` trees, and paths in code, macros and attributes. Test code is left out.

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, ItemMod, ItemUse, Lit, Macro, Meta, MetaList, Token, UseTree};

/// Names of modules from the root of a crate.
pub type ModulePath = Vec<String>;

/// A path in code: `crate::a::b`, `super::c`, `d::e`.
pub struct Reference {
    /// The importing module.
    pub module: ModulePath,
    /// Its names as they are written.
    pub segments: Vec<String>,
    /// The name that a `use` binds it to.
    pub bound: Option<String>,
    pub line: usize,
}

/// A module in another file: `mod name;`.
pub struct Declared {
    pub module: ModulePath,
    /// Its `#[path = "…"]`.
    pub path: Option<String>,
}

/// Imports and modules of a file.
#[derive(Default)]
pub struct Imports {
    pub references: Vec<Reference>,
    pub declared: Vec<Declared>,
    /// Modules in this file, its own first.
    pub inline: Vec<ModulePath>,
    module: ModulePath,
}

/// Reads the file of a module.
///
/// # Errors
/// Code that syn cannot parse.
pub fn read(module: &ModulePath, text: &str) -> syn::Result<Imports> {
    let mut imports = Imports { module: module.clone(), inline: vec![module.clone()], ..Imports::default() };
    imports.visit_file(&syn::parse_file(text)?);
    Ok(imports)
}

impl Imports {
    fn add(&mut self, segments: Vec<String>, bound: Option<String>, line: usize) {
        self.references.push(Reference { module: self.module.clone(), segments, bound, line });
    }

    fn add_tree(&mut self, tree: &UseTree, mut before: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(&path.tree, before);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(tree, before.clone())),
            UseTree::Glob(glob) => self.add(before, None, glob.star_token.spans[0].start().line),
            UseTree::Name(name) => {
                let line = name.ident.span().start().line;
                if name.ident != "self" {
                    before.push(name.ident.to_string());
                }
                let bound = before.last().cloned();
                self.add(before, bound, line);
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    before.push(rename.ident.to_string());
                }
                self.add(before, Some(rename.rename.to_string()), rename.ident.span().start().line);
            }
        }
    }

    /// Paths among tokens that syn does not parse: those of macros and attributes.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut path: Vec<String> = Vec::new();
        // `::` before the next name; and whether the path began with it, which makes it that of an external crate.
        let (mut colons, mut is_external) = (0, false);
        while let Some(token) = tokens.next() {
            match &token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        path.clear();
                    }
                    if path.is_empty() {
                        is_external = colons == 2;
                    }
                    path.push(ident.to_string());
                    let goes_on = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
                    if !goes_on && !is_external && path.len() > 1 {
                        self.add(path.clone(), None, ident.span().start().line);
                    }
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    // `a::{b, c}` of a `use` in a macro, and `a::<T>::b`: what stands before is enough.
                    if colons == 2 && !is_external && path.len() > 1 {
                        self.add(path.clone(), None, group.span_open().start().line);
                    }
                    self.add_tokens(group.stream());
                }
                _ => {}
            }
            path.clear();
            colons = 0;
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !matches!(item, ImplItem::Fn(function) if function.attrs.iter().any(is_for_tests)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        if item.content.is_some() {
            self.inline.push(self.module.clone());
            visit::visit_item_mod(self, item);
        } else {
            let path = item.attrs.iter().find_map(path_attribute);
            self.declared.push(Declared { module: self.module.clone(), path });
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.add_tree(&item.tree, Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            let line = path.segments[0].ident.span().start().line;
            self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect(), None, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.add_tokens(called.tokens.clone());
    }

    fn visit_meta_list(&mut self, list: &'ast MetaList) {
        self.add_tokens(list.tokens.clone());
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]`, or another condition that only tests meet.
fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
}

fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let Ok(inner) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else { return false };
    (list.path.is_ident("all") && inner.iter().any(needs_test))
        || (list.path.is_ident("any") && inner.iter().all(needs_test))
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(value) = &attribute.meta else { return None };
    match &value.value {
        Expr::Lit(literal) if value.path.is_ident("path") => match &literal.lit {
            Lit::Str(path) => Some(path.value()),
            _ => None,
        },
        _ => None,
    }
}
