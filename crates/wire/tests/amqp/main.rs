//! The AMQP 0-9-1 codec from outside: published frames, broken frames, random bytes.

#[cfg(test)]
mod broken;
#[cfg(test)]
mod content;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod json;
#[cfg(test)]
mod methods;
#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reply_codes;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod vectors;
