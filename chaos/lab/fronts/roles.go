package fronts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/front/roles"
)

// Roles are callers, one of each role, and their tokens. The tenant may check and operate in domain
// web alone.
type Roles struct {
	Book   *roles.Book
	Tokens map[roles.Role]string
}

// NewRoles writes a roles file and opens it.
func NewRoles(t testing.TB) Roles {
	t.Helper()
	all := Roles{Tokens: map[roles.Role]string{}}
	var written strings.Builder
	written.WriteString("callers:\n")
	for _, role := range roles.Roles() {
		token, hashed := roles.NewToken()
		all.Tokens[role] = token
		fmt.Fprintf(&written, "  - {name: the-%s, roles: [%s], tokens: [%q], certificates: [\"spiffe://x.org/%s\"]}\n", role, role, hashed, role)
	}
	token, hashed := roles.NewToken()
	all.Tokens["tenant"] = token
	fmt.Fprintf(&written, "  - {name: the-tenant, roles: [check, operate], domains: [web], tokens: [%q]}\n", hashed)
	path := filepath.Join(t.TempDir(), "roles.yaml")
	suite.Must(t, os.WriteFile(path, []byte(written.String()), 0o600))
	var err error
	all.Book, err = roles.OpenBook(path, func(error) {})
	suite.Must(t, err)
	return all
}

// Guard returns the guard of a port.
func (r Roles) Guard(port string) *roles.Guard { return roles.NewGuard(port, r.Book, Quiet()) }
