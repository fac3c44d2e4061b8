//go:build !linux

package process

import (
	"fmt"
	"testing"
)

type halves struct{ served, loading struct{} }

func cores(testing.TB) (h halves) {
	fmt.Println("not on Linux: the node shares its processors with its load")
	return h
}

func use(testing.TB, struct{}) {}
