//! Connections through a passthrough route on both data paths: the kernel program, and the agent's relay. In the kernel
//! run, the program must have dialed every connection.

/// Runs stories on both data paths.
macro_rules! on_both_data_paths {
    ($($story:ident),+ $(,)?) => {
        mod in_user_space {
            $(#[test]
            fn $story() -> anyhow::Result<()> {
                super::$story(tests::sluice::DataPath::UserSpace)
            })+
        }

        mod in_the_kernel {
            $(#[test]
            fn $story() -> anyhow::Result<()> {
                super::$story(tests::sluice::DataPath::Kernel)
            })+
        }
    };
}

mod agent;
mod corpus;
mod endpoints;
mod ends;
mod faults;
mod full;
mod hellos;
mod kernel_log;
mod leaks;
mod memory;
mod odd_clients;
mod odd_packets;
mod options;
mod segments;
mod sources;
