package envoyimport

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/quotad/quotad/policy"
)

// nameLimits names the limits of a domain. A limit has the name of its path (database_users.user)
// if that is a valid name and no other limit has it. Otherwise it has as much of it as is valid,
// and a hash of the path. So a name depends on nothing but the path, unless two are alike. Envoy is
// not told of it: a limit without a rate_limit.name has no alias.
func (d *domain) nameLimits() {
	paths := map[string]int{}
	for _, r := range d.limits {
		paths[plainName(r.path)]++
	}
	for digits := 8; ; digits *= 2 {
		used := map[string]bool{}
		for _, r := range d.limits {
			r.name = plainName(r.path)
			valid := validName(r.name)
			if valid != r.name || paths[r.name] > 1 {
				r.name = hashed(valid, d.name, r.path, digits)
			}
			used[r.name] = true
		}
		if len(used) == len(d.limits) || digits == 32 {
			return
		}
	}
}

// plainName returns the name of a path in the statistics of envoyproxy/ratelimit.
func plainName(path []*descriptor) string {
	names := make([]string, len(path))
	for i, step := range path {
		names[i] = step.composite()
	}
	return strings.Join(names, ".")
}

// validName returns the name in letters that limits may have, and no longer than they may be.
func validName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	return name[:min(len(name), policy.MaxNameBytes)]
}

// hashed returns the beginning of a name and some hexadecimal digits of a hash of its path.
func hashed(name, domain string, path []*descriptor, digits int) string {
	h := sha256.New()
	h.Write([]byte(domain))
	for _, step := range path {
		h.Write([]byte("\x00" + step.key + "\x00" + step.value))
	}
	end := "-" + hex.EncodeToString(h.Sum(nil))[:digits]
	name = name[:min(len(name), policy.MaxNameBytes-len(end))]
	return strings.TrimRight(name, ".-_") + end
}
