module sluice.dev/tests/definitions

go 1.26.0

require (
	github.com/projectcontour/contour v1.33.8
	sigs.k8s.io/gateway-api v1.6.3
)
