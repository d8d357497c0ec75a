// The release of Go that builds tests/cluster/kube where there is none that is new enough; go.sum pins it for each
// architecture.
module sluice.dev/tests/toolchain

go 1.19

require golang.org/toolchain v0.0.1-go1.26.8.linux-amd64
