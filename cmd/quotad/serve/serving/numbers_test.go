package serving

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// constant returns the text of a string literal, or of several that are added.
func constant(e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.BinaryExpr:
		a, err := constant(e.X)
		b, errB := constant(e.Y)
		return a + b, errors.Join(err, errB)
	}
	return "", errors.New("it is not a constant text; put what varies into an attribute")
}

// loggedMessages returns the messages of all warnings and errors that a node logs, with their
// places.
func loggedMessages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"region", "gossip", "cmd/quotad/serve/serving"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", "..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is || !logs(call) {
					return true
				}
				at := set.Position(call.Pos()).String()
				message, err := constant(call.Args[0])
				if err != nil {
					t.Errorf("%s: the message of a log line: %v", at, err)
				}
				all[message] = at
				return true
			})
			return nil
		})
		suite.Must(t, err)
	}
	return all
}

// logs reports whether a call is that of a logger's Warn or Error: one of something that is named a
// log, unlike status.Error and http.Error.
func logs(call *ast.CallExpr) bool {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is || len(call.Args) == 0 || method.Sel.Name != "Warn" && method.Sel.Name != "Error" {
		return false
	}
	switch of := method.X.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(of.Name), "log") || strings.HasSuffix(strings.ToLower(of.Name), "logger")
	case *ast.SelectorExpr:
		return strings.HasSuffix(strings.ToLower(of.Sel.Name), "log") || strings.HasSuffix(strings.ToLower(of.Sel.Name), "logger")
	}
	return false
}

// TestEveryMessageHasANumber: the table has the messages that there are and no others, each a
// number of its own, and docs/reference/log.md has a part for each, with the message.
func TestEveryMessageHasANumber(t *testing.T) {
	logged := loggedMessages(t)
	if len(logged) < 40 {
		t.Fatalf("only %d messages were found", len(logged))
	}
	for message, at := range logged {
		if messageNumbers[message] == 0 {
			t.Errorf("%s: %q has no number; give it the next one in numbers.go, and describe it in docs/reference/log.md", at, message)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reference", "log.md"))
	suite.Must(t, err)
	parts := map[string]string{} // by heading
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		parts[heading] = strings.Join(strings.Fields(strings.ReplaceAll(text, "\n> ", " ")), " ")
	}
	taken := map[int]string{}
	for message, number := range messageNumbers {
		if logged[message] == "" {
			t.Errorf("QD%d is of a message that nothing logs: %q", number, message)
		}
		if taken[number] != "" {
			t.Errorf("QD%d is of two messages: %q and %q", number, message, taken[number])
		}
		taken[number] = message
		if text := parts[fmt.Sprintf("QD%d", number)]; !strings.HasPrefix(text, message+" ") || !strings.Contains(text, "**Do:**") {
			t.Errorf("docs/reference/log.md says of QD%d %.80q, and the message is %q", number, text, message)
		}
	}
	if len(parts) != len(messageNumbers) {
		t.Errorf("docs/reference/log.md has %d parts for %d messages", len(parts), len(messageNumbers))
	}
}

// TestWarningsAreNumbered: lines of a level above INFO say where they are described.
func TestWarningsAreNumbered(t *testing.T) {
	var b strings.Builder
	log := newLog(&b, slog.LevelInfo, "eu", "n1").With("a", 1)
	log.Error("limits document refused", "err", "x")
	log.Info("limits document refused")
	log.Warn("a message of a library")
	lines := strings.Split(b.String(), "\n")
	if number := fmt.Sprintf(`"see":"QD%d"`, messageNumbers["limits document refused"]); !strings.Contains(lines[0], number) ||
		strings.Contains(lines[1], `"see"`) || strings.Contains(lines[2], `"see"`) {
		t.Errorf("%s", b.String())
	}
}
