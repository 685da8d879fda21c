//! The FireMQ codec from outside: published frames, broken frames, random bytes, URLs.

#[cfg(test)]
mod json;
#[cfg(test)]
mod random;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod splitting;
#[cfg(test)]
mod strict;
#[cfg(test)]
mod url;
#[cfg(test)]
mod vectors;
