//! The Amaquet codec from outside: published frames, broken frames, random bytes, commands.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod json;
#[cfg(test)]
mod payloads;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod vectors;
