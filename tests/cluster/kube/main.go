// Program kube is every component of a Kubernetes cluster, chosen by the first argument: the packages that they share are
// compiled and linked once.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// commands makes the command of each component that has one; etcd has a main function instead.
var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": manager.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	// The component sees its own name as the program's.
	os.Args = os.Args[1:]
	if len(os.Args) > 0 && os.Args[0] == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	if len(os.Args) > 0 {
		if command, ok := commands[os.Args[0]]; ok {
			os.Exit(cli.Run(command()))
		}
	}
	components := append(slices.Sorted(maps.Keys(commands)), "etcd")
	fmt.Fprintf(os.Stderr, "usage: kube COMPONENT ARGUMENT..., where COMPONENT is one of %s\n", strings.Join(components, ", "))
	os.Exit(2)
}
