//! The Fila codec from outside: published frames, broken frames, random bytes.

#[cfg(test)]
mod broken;
#[cfg(test)]
mod continuation;
#[cfg(test)]
mod json;
#[cfg(test)]
mod random;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod vectors;
