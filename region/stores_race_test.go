//go:build race

package region

const onTwins = true // see stores_test.go
