//! Tests of the log through its public interface, on a disk in memory.

#[cfg(test)]
mod basic;
#[cfg(test)]
mod cold;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod every_call;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod inspect;
#[cfg(test)]
mod keep;
#[cfg(test)]
mod keep_crash;
#[cfg(test)]
mod keep_damage;
#[cfg(test)]
mod keep_steps;
#[cfg(test)]
mod reclaim;
#[cfg(test)]
mod recovery_crash;
#[cfg(test)]
mod space;
#[cfg(test)]
mod support;
