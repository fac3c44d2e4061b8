package store

import (
	"strings"
	"testing"
)

// TestWordsOfServers: what Redis and Valkey answer to a user without a right is of the same kind
// whatever their words, and tells a command from a key. All of it was answered by real servers.
func TestWordsOfServers(t *testing.T) {
	for server, all := range map[string][]struct {
		words string
		key   bool
	}{
		"Redis 7.0.15": {
			{"NOPERM this user has no permissions to run the 'evalsha' command", false},
			{"ERR The user executing the script can't run this command or subcommand script: 1a8c, on @user_script:1.", false},
			{"ERR The user executing the script can't run this command or subcommand", false},
			{"NOPERM this user has no permissions to access one of the keys used as arguments", true},
			{"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: db94, on @user_script:1.", true},
		},
		"Redis 8.2.3": {
			{"NOPERM User node has no permissions to run the 'script|load' command", false},
			{"ERR ACL failure in script: User node has no permissions to run the 'time' command script: 1a8c, on @user_script:1.", false},
			{"NOPERM No permissions to access a key", true},
			{"ERR ACL failure in script: No permissions to access a key script: db94, on @user_script:1.", true},
		},
		"Valkey 8.1.8, Valkey 9.1.2": {
			{"ERR ACL failure in script: User node has no permissions to run the 'time' command", false},
			{"ERR ACL failure in script: User node has no permissions to run the 'hget' command script: on @user_script:2089.", false},
			{"ERR ACL failure in script: No permissions to access a key script: on @user_script:1.", true},
		},
	} {
		for _, c := range all {
			e := Failed("10.0.0.5:6379", "script decide", refusal(c.words))
			if e.Kind != "NOPERM" || !e.Ran || !strings.Contains(e.Error(), MinimalACL) {
				t.Errorf("%s: %q is of kind %q, ran %v: %v", server, c.words, e.Kind, e.Ran, e)
			}
			if keyDenied(refusal(c.words)) != c.key {
				t.Errorf("%s: %q is about a key: %v", server, c.words, !c.key)
			}
		}
	}
}
