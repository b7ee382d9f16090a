//! Enumerations that may grow.

/// Makes an enumeration of the values that this version knows, and `Other` for those of a newer one.
macro_rules! open_enumeration {
    ($(#[$doc:meta])* $name:ident { $($value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $value,)*
            /// A value that this version does not know; treat it as the general case.
            Other(String),
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$value,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$value => $text.into(),)*
                    $name::Other(text) => text,
                }
            }
        }
    };
}

pub(crate) use open_enumeration;
