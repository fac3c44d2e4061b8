package envoyimport

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
)

// nameLimits names the limits of a domain. A limit has the name of its path (database_users.user)
// if that is a valid name and no other limit has it. Otherwise it has as much of it as is valid,
// and a hash of the path. So a name depends on nothing but the path, unless two are alike.
//
// A limit without a rate_limit.name can be replaced by the name that it gets here. So that name is
// none that replaces means for another limit, either.
func (d *domain) nameLimits() {
	paths, aliases := map[string]int{}, map[string]bool{}
	for _, r := range d.limits {
		paths[plainName(r.path)]++
	}
	for _, r := range slices.Concat(d.limits, d.exempt) {
		if limit := r.end().limit; limit != nil {
			aliases[limit.name] = true
			for _, name := range limit.replaces {
				aliases[name] = true
			}
		}
	}
	for digits := 8; ; digits *= 2 {
		used := map[string]bool{}
		for _, r := range d.limits {
			r.name = plainName(r.path)
			valid := validName(r.name)
			replaced := r.end().limit.name == "" && aliases[r.name]
			if valid != r.name || paths[r.name] > 1 || replaced {
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
