//! Stand-in.

/// Stand-in.
pub struct Fence(u32);

impl Default for Fence {
    fn default() -> Self {
        Self::new()
    }
}

impl Fence {
    /// Stand-in.
    pub fn new() -> Self {
        Self(fastrand::u32(..))
    }
    /// Stand-in.
    pub fn begin(&self) -> String {
        format!("<untrusted id={:x}>", self.0)
    }
    /// Stand-in.
    pub fn end(&self) -> String {
        format!("</untrusted id={:x}>", self.0)
    }
    /// Stand-in.
    pub fn neutral(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// Stand-in.
pub fn clean_json(_value: &mut serde_json::Value, _longest: usize) {}
