// Package redisserver finds the program that tests, demos and scenarios start as a Redis.
package redisserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable names the environment variable with the path of the program, such as that of a
// valkey-server. If it is not set, the program is redis-server, where PATH has it.
const Variable = "REDIS_SERVER"

// ErrMissing says that redis-server is not installed on this machine.
var ErrMissing = errors.New(
	"redis-server is not installed: apt-get install redis-server (or brew install redis)")

// Path returns the path of the program.
func Path() (string, error) {
	given := os.Getenv(Variable)
	if given == "" {
		path, err := exec.LookPath("redis-server")
		if err != nil {
			return "", ErrMissing
		}
		return path, nil
	}
	path, err := exec.LookPath(given)
	if err == nil { // whoever starts it may work in another folder
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w; give it the path of a redis-server or valkey-server", Variable, err)
	}
	return path, nil
}
