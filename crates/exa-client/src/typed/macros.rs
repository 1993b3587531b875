//! The macros that define generated types. Generated code lists only names, so that it stays short.
//!
//! The macros name no method of a type, because a field may have any name.

/// Defines an object of a response: its name, then each accessor with its type and the field it reads.
///
/// `Name` owns its JSON and `Name<&Value>` is a view of it; both have the same accessors.
#[macro_export]
macro_rules! response_object {
    ($(#[$meta:meta])* $name:ident<$a:lifetime> {
        $($(#[$field_meta:meta])* $field:ident: $type:ty = $key:literal,)*
    }) => {
        $crate::response_type! { $(#[$meta])* $name }

        impl<$a> $name<&$a $crate::macro_support::Value> {
            $(
                $(#[$field_meta])*
                #[inline]
                pub fn $field(self) -> ::core::option::Option<$type> {
                    $crate::macro_support::read_field(self.0, $key)
                }
            )*
        }

        impl $name {
            $(
                $(#[$field_meta])*
                #[inline]
                pub fn $field<$a>(&$a self) -> ::core::option::Option<$type> {
                    $crate::macro_support::read_field(&self.0, $key)
                }
            )*
        }

        impl<$a> $crate::View<$a> for $name<&$a $crate::macro_support::Value> {
            #[inline]
            fn read(json: &$a $crate::macro_support::Value) -> ::core::option::Option<Self> {
                json.is_object().then_some(Self(json))
            }
        }
    };
}

/// Defines a response that is not an object: its name and what it is read as.
#[macro_export]
macro_rules! response_value {
    ($(#[$meta:meta])* $name:ident<$a:lifetime>($type:ty)) => {
        $crate::response_type! { $(#[$meta])* $name }

        impl $name {
            /// Returns the response, or `None` if it is of another type.
            pub fn view<$a>(&$a self) -> ::core::option::Option<$type> {
                <$type as $crate::View<$a>>::read(&self.0)
            }
        }
    };
}

/// Defines a union of objects: its name, the field with the tag, then each alternative with its type and its tags.
#[macro_export]
macro_rules! response_union {
    ($(#[$meta:meta])* $name:ident<$a:lifetime> by $tag:literal {
        $($(#[$variant_meta:meta])* $variant:ident($type:ty) = $($value:literal)|+,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $name<$a> {
            $(
                $(#[$variant_meta])*
                $variant($type),
            )*
            /// Any other JSON.
            Other(&$a $crate::macro_support::Value),
        }

        impl<$a> $crate::View<$a> for $name<$a> {
            fn read(json: &$a $crate::macro_support::Value) -> ::core::option::Option<Self> {
                let tag = json.get($tag).and_then($crate::macro_support::Value::as_str);
                let known = match tag {
                    $(
                        ::core::option::Option::Some($($value)|+) => {
                            <$type as $crate::View<$a>>::read(json).map(Self::$variant)
                        }
                    )*
                    _ => ::core::option::Option::None,
                };
                ::core::option::Option::Some(known.unwrap_or(Self::Other(json)))
            }
        }
    };
}

/// Defines an enum of texts that accepts any other text: its name, then each variant with its text.
///
/// `Name` owns an unknown text, `Name<&str>` borrows it.
#[macro_export]
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $value:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name<S = ::std::string::String> {
            $(
                #[doc = ::core::concat!("`", $value, "`")]
                $variant,
            )*
            /// Any other value.
            Other(S),
        }

        impl<S: ::core::convert::AsRef<str>> $name<S> {
            /// Returns the text of the value.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $value,)*
                    Self::Other(text) => ::core::convert::AsRef::as_ref(text),
                }
            }
        }

        impl<'a> ::core::convert::From<&'a str> for $name<&'a str> {
            fn from(text: &'a str) -> Self {
                match text {
                    $($value => Self::$variant,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl ::core::convert::From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($value => Self::$variant,)*
                    _ => Self::Other(::std::borrow::ToOwned::to_owned(text)),
                }
            }
        }

        impl<'a> $crate::View<'a> for $name<&'a str> {
            fn read(json: &'a $crate::macro_support::Value) -> ::core::option::Option<Self> {
                json.as_str().map(<Self as ::core::convert::From<&'a str>>::from)
            }
        }

        impl<S: ::core::convert::AsRef<str>> ::core::fmt::Display for $name<S> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<S: ::core::convert::AsRef<str>> $crate::macro_support::Serialize for $name<S> {
            fn serialize<T: $crate::macro_support::Serializer>(
                &self,
                serializer: T,
            ) -> ::core::result::Result<T::Ok, T::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::macro_support::Deserialize<'de> for $name {
            fn deserialize<D: $crate::macro_support::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let text: ::std::string::String =
                    $crate::macro_support::Deserialize::deserialize(deserializer)?;
                ::core::result::Result::Ok(<Self as ::core::convert::From<&str>>::from(&text))
            }
        }
    };
}

/// Defines a type that owns JSON or borrows it, without accessors.
#[doc(hidden)]
#[macro_export]
macro_rules! response_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name<J = $crate::macro_support::Value>(J);

        impl ::core::convert::From<$crate::macro_support::Value> for $name {
            fn from(json: $crate::macro_support::Value) -> Self {
                Self(json)
            }
        }

        impl ::core::convert::From<$name> for $crate::macro_support::Value {
            fn from(response: $name) -> Self {
                response.0
            }
        }

        impl ::core::convert::From<$name<&$crate::macro_support::Value>> for $name {
            fn from(view: $name<&$crate::macro_support::Value>) -> Self {
                Self(::core::clone::Clone::clone(view.0))
            }
        }

        impl<'a> $crate::AsJson<'a> for $name<&'a $crate::macro_support::Value> {
            fn json(self) -> &'a $crate::macro_support::Value {
                self.0
            }
        }

        impl<'a> $crate::AsJson<'a> for &'a $name {
            fn json(self) -> &'a $crate::macro_support::Value {
                &self.0
            }
        }

        impl<J: $crate::macro_support::Serialize> $crate::macro_support::Serialize for $name<J> {
            fn serialize<S: $crate::macro_support::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::macro_support::Serialize::serialize(&self.0, serializer)
            }
        }

        impl<'de> $crate::macro_support::Deserialize<'de> for $name {
            fn deserialize<D: $crate::macro_support::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::macro_support::Deserialize::deserialize(deserializer).map(Self)
            }
        }
    };
}
