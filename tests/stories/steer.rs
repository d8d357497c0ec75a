//! Connections through a passthrough route, whoever carries them: the kernel program on its own, or the agent's relay.
//! Each story is told on both data paths; in the kernel, every connection must really have been made by the program.

/// Tells stories on both data paths.
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
