//go:build !race

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// A block of commands is fenced as "console". A line that begins with "$ " is a command; what is
// below it is its output. Commands of "console run" blocks are run by TestDocsCommandsRun, with the
// files of the page (blocks with file=NAME) in their folder. They are commands of quotad alone, and
// their output, of both streams, must be what the page says; -update writes it. "[exit code N]" as
// its last line stands for an exit code other than 0.

// shellCommand is a command of a console block, with what should come of it.
type shellCommand struct {
	fence  codeBlock
	text   string
	output string
}

// commands returns the commands of a block. A line that ends with a backslash goes on in the next.
func (f codeBlock) commands() []shellCommand {
	var all []shellCommand
	continued := false
	for l := range strings.Lines(f.text) {
		text, isCommand := strings.CutPrefix(l, "$ ")
		switch {
		case isCommand:
			all = append(all, shellCommand{fence: f, text: strings.TrimRight(text, "\n")})
		case len(all) == 0:
		case continued:
			last := &all[len(all)-1]
			last.text = strings.TrimSuffix(last.text, "\\") + strings.TrimSpace(l)
		default:
			all[len(all)-1].output += l
		}
		continued = (isCommand || continued) && strings.HasSuffix(strings.TrimRight(l, "\n"), "\\")
	}
	return all
}

// programs are what commands of the documentation may call beside quotad and make.
var programs = []string{"cat", "cd", "curl", "git", "go", "grpcurl", "ip", "kubectl", "mkdir", "nginx", "caddy",
	"haproxy", "redis-cli", "redis-server", "systemctl", "docker", "./up.sh", "./keys.sh", "export",
	"deploy/multi-region/up.sh", "deploy/multi-region/keys.sh", "envoy", "echo", "cp", "helm", "promtool", "umask"}

// TestDocsCommandsExist: every command of a console block, and every command of quotad, make and go
// test that stands in the text, names subcommands and flags, targets, or packages and tests that
// exist.
func TestDocsCommandsExist(t *testing.T) {
	found := 0
	for _, p := range pages(t) {
		for _, f := range p.fences {
			if f.language == "sh" {
				found += checkScript(t, f)
			}
			if f.language != "console" {
				continue
			}
			commands := f.commands()
			if len(commands) == 0 {
				t.Errorf("%s: no line of the block begins with \"$ \"", f.at())
			}
			for _, c := range commands {
				for _, part := range splitCommands(c.text) {
					found++
					if problem := commandProblem(part, true); problem != "" {
						t.Errorf("%s: %s: %s", f.at(), c.text, problem)
					}
				}
			}
		}
		for _, l := range p.prose {
			for _, code := range inlineCode.FindAllString(l.text, -1) {
				found++
				if problem := commandProblem(strings.Trim(code, "`"), false); problem != "" {
					t.Errorf("%s:%d: %s: %s", p.path, l.number, code, problem)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found", found)
	}
}

// checkScript checks the lines of a block of "sh", in which commands stand without "$ ". It returns
// the number of lines.
func checkScript(t *testing.T, f codeBlock) int {
	t.Helper()
	lines := strings.Split(strings.ReplaceAll(f.text, "\\\n", " "), "\n")
	for _, l := range lines {
		for _, part := range splitCommands(l) {
			if problem := commandProblem(part, false); problem != "" {
				t.Errorf("%s: %s: %s", f.at(), l, problem)
			}
		}
	}
	return len(lines)
}

// splitCommands splits a line at pipes, semicolons and the brackets of a subshell, and drops
// comments.
func splitCommands(text string) []string {
	var parts []string
	var part strings.Builder
	var quote rune
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && (i == 0 || text[i-1] == ' '):
			return append(parts, part.String())
		case r == '|' || r == ';' || r == '&' || r == '(' && i == 0 || r == ')' && text[0] == '(':
			parts = append(parts, part.String())
			part.Reset()
			continue
		}
		part.WriteRune(r)
	}
	return slices.DeleteFunc(append(parts, part.String()),
		func(s string) bool { return strings.TrimSpace(s) == "" })
}

var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// commandProblem says what is wrong with one command, if it is one that can be checked.
func commandProblem(text string, block bool) string {
	words := shellWords(text)
	for len(words) > 0 && assignment.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) < 2 && !block || len(words) == 0 {
		return ""
	}
	switch {
	case words[0] == "quotad":
		return quotadProblem(words[1:])
	case strings.HasPrefix(strings.Join(words, " "), "go run ./cmd/quotad "):
		return quotadProblem(words[3:])
	case words[0] == "make":
		return makeProblem(words[1:])
	case words[0] == "go" && words[1] == "test":
		return goTestProblem(words[2:])
	case block && !slices.Contains(programs, words[0]):
		return "no test knows the program " + words[0]
	}
	return ""
}

// shellWords splits a command into words. It knows quotes, and ends at a redirection.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ':
			end()
		case r == '>' || r == '<':
			end()
			return words
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	end()
	return words
}

// quotadProblem says what is wrong with a command line of quotad.
func quotadProblem(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "..." })
	root := newRoot(io.Discard)
	cmd, rest, err := root.Find(words)
	switch {
	case err != nil:
		return err.Error()
	case cmd.Hidden && cmd.DisableFlagParsing: // a command of before
		return cmd.Short
	case cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-"):
		return "no such subcommand: " + rest[0]
	}
	if err := cmd.ParseFlags(rest); err != nil && !strings.Contains(err.Error(), "help requested") {
		return err.Error()
	}
	return ""
}

// makeProblem says what is wrong with the arguments of make.
func makeProblem(words []string) string {
	text, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		return err.Error()
	}
	for _, target := range words {
		if !assignment.MatchString(target) && !strings.Contains(string(text), "\n"+target+":") {
			return "the Makefile has no target " + target
		}
	}
	return ""
}

// goTestProblem says what is wrong with the arguments of go test: the packages must be there, and
// the patterns of -run and -bench must match a function of their tests.
func goTestProblem(words []string) string {
	var folders, patterns []string
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./"):
			folders = append(folders, strings.TrimSuffix(w, "/..."))
		case i > 0 && (words[i-1] == "-run" || words[i-1] == "-bench") && w != "^$":
			patterns = append(patterns, strings.Split(w, "/")[0])
		}
	}
	var source strings.Builder
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(repository, folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			return "there are no tests in " + folder
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err.Error()
			}
			source.Write(text)
		}
	}
	for _, pattern := range patterns {
		expression, err := regexp.Compile(`(?m)^func (Test|Benchmark|Fuzz|Example)\w*`)
		if err != nil {
			return err.Error()
		}
		wanted, err := regexp.Compile(strings.ReplaceAll(pattern, `\|`, "|"))
		if err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(expression.FindAllString(source.String(), -1), wanted.MatchString) {
			return "no test there matches " + pattern
		}
	}
	return ""
}

// TestDocsCommandsRun runs the commands of "console run" blocks, page by page.
func TestDocsCommandsRun(t *testing.T) {
	ran := 0
	for _, p := range pages(t) {
		var commands []shellCommand
		for _, f := range p.fences {
			if f.language == "console" && slices.Contains(f.words, "run") {
				commands = append(commands, f.commands()...)
			}
		}
		if len(commands) == 0 {
			continue
		}
		t.Run(p.path, func(t *testing.T) {
			root, err := filepath.Abs(repository)
			suite.Must(t, err)
			t.Chdir(filesOf(t, p))
			for _, c := range commands {
				ran++
				c.run(t, root)
			}
		})
	}
	if ran < 5 {
		t.Errorf("only %d commands were run", ran)
	}
}

// filesOf writes the files of a page into a new folder, and returns that.
func filesOf(t *testing.T, p *page) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range p.fences {
		if name, ok := f.file(); ok {
			suite.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(f.text), 0o600))
		}
	}
	return dir
}

// run runs a command. With -update it writes what the command prints into the page.
func (c shellCommand) run(t *testing.T, root string) {
	t.Helper()
	text, _, _ := strings.Cut(c.text, " #")
	words := shellWords(text)
	if len(words) == 0 || words[0] != "quotad" {
		t.Fatalf("%s: %s: only commands of quotad are run", c.fence.at(), c.text)
	}
	var out bytes.Buffer
	if code := run(t.Context(), words[1:], &out, &out); code != 0 {
		out.WriteString("[exit code " + strconv.Itoa(code) + "]\n")
	}
	want := strings.TrimRight(c.output, "\n")
	got := strings.TrimRight(trimLines(out.String()), "\n")
	switch {
	case got == want || pattern(want).MatchString(got):
	case *updateDocs:
		p := c.fence.page
		p.text = strings.Replace(p.text, "$ "+c.text+"\n"+c.output, "$ "+c.text+"\n"+got+"\n", 1)
		suite.Must(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(p.path)), []byte(p.text),
			0o644))
	default:
		t.Errorf("%s: %s prints\n%s\nand the page says\n%s", c.fence.at(), c.text, got, want)
	}
}

// pattern returns an expression of what a page says that a command prints. "[...]" stands for any text
// within a line.
func pattern(want string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(want)
	return regexp.MustCompile("^" + strings.ReplaceAll(quoted, regexp.QuoteMeta("[...]"), ".*") + "$")
}

// trimLines removes blanks at the ends of lines.
func trimLines(text string) string {
	return regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(text, "")
}
