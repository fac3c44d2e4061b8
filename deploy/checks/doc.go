// Package checks tests the Helm chart and the Compose file of quotad with the libraries of Helm,
// Kubernetes and Compose. It is a module of its own, so that these libraries are not among those of
// quotad. "make deploy-check" runs it.
package checks
