//go:build !race

package region

// onTwins says that regions' stores are twins of the scripts. Here they are embedded Redis servers, which run the
// scripts themselves, and so slowly under the race detector that it looks at the nodes with twins.
const onTwins = false
