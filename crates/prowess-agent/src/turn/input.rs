//! What does a person say: words, and images to look at?

use crate::image::{self, Image, ImageError};
use crate::message::{Block, User, now};

/// What a person says in one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Input {
    text: String,
    images: Vec<Image>,
}

impl Input {
    /// With these images to look at.
    pub fn with_images(self, images: Vec<Image>) -> Result<Self, ImageError> {
        image::check(&images)?;
        Ok(Self { images, ..self })
    }

    /// The words.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The images.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// As a message, with `text` for the words.
    pub(super) fn message(&self, text: String) -> User {
        // An image alone says something; nothing at all is still a message.
        let words = (!text.is_empty() || self.images.is_empty()).then(|| Block::text(text));
        let content = words.into_iter().chain(self.images.iter().cloned().map(Block::Image)).collect();
        User { content, timestamp: now() }
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<&String> for Input {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self { text, images: Vec::new() }
    }
}
