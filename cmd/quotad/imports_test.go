package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/quotad/quotad/"

// everywhere is the package that every other may import.
const everywhere = "quantity"

// house says which packages of this module each package may import, and why no others. Imports run
// one way: cmd -> chaos -> region -> exchange, gossip, policy -> allocator, algorithms, proto.
var house = map[string]struct {
	may []string
	why string
}{
	"algorithms": {nil, "pure: the Lua and its twin know nothing but themselves"},
	"allocator": {[]string{"algorithms"},
		"pure: the plan is arithmetic on what stores show, by the traits of the kinds"},
	"allocator/exchange": {[]string{"algorithms", "allocator"},
		"pure: the protocol must run in a simulator without the world"},
	"gossip":            {nil, "spreads opaque bytes"},
	"policy/files":      {nil, "reads what an operator names, whatever it is for"},
	"policy/strictyaml": {nil, "reads YAML, whatever it says"},
	everywhere:          {nil, "the types of what is counted: a leaf that every package may import"},
	"calendar":          {nil, "pure: the rules of a time zone come in as a value"},
	"policy/zones":      {nil, "the rules of the world's time zones, as data"},
	"policy": {[]string{"algorithms", "calendar", "policy/files", "policy/strictyaml",
		"policy/zones"},
		"the document means the same wherever it is read; its ranges are those of the arithmetic"},
	"policy/envoyimport": {[]string{"policy", "policy/strictyaml"}, "pure: files in, a document out"},
	"policy/barrier": {[]string{"algorithms", "allocator", "policy"},
		"pure: when a document takes effect must be played in a simulator, and searched"},
	"region/link":         {nil, "makes cuts on sockets, and knows nothing of what they carry"},
	"region/journal/disk": {nil, "the seam below the journal, which both its sides import"},
	"region/journal":      {[]string{"region/journal/disk"}, "remembers what it is given"},
	"region/repeat":       {nil, "does something again and again, whatever it is"},
	"region/store":        {[]string{"algorithms"}, "runs scripts"},
	"region/door":         {nil, "bounds what callers hold, whatever they call for"},
	"region/access": {[]string{"policy/files", "policy/strictyaml", "region/door", "region/repeat"},
		"says who may do what, and knows nothing of what it is"},
	"region/audit": {[]string{"policy", "region/door"}, "writes down what it is told"},
	"region/peer": {[]string{"algorithms", "allocator/exchange", "policy/files", "proto/peer/v1",
		"proto/quotad/v1", "region/door", "region/store", "region/view"}, "carries messages"},
	"region/rivals": {[]string{"region/peer", "region/store", "region/tenure"},
		"finds a second store of a region, and has this node stop using its own"},
	"region/held": {[]string{"algorithms"},
		"what a node holds of a bucket in memory: neither clock nor store"},
	"region/view": {[]string{"policy", "proto/quotad/v1", "region/tally"},
		"pure: what nodes told comes in, and what operators see goes out"},
	"region/tally": {nil, "counts what it is told, and decides nothing"},
	"region/rules": {[]string{"algorithms", "allocator", "allocator/exchange", "policy",
		"policy/barrier", "region/held", "region/store", "region/tally"}, "a document as one region applies it: whoever works with it may read it"},
	"region/tenure": {[]string{"allocator", "policy", "policy/barrier", "region/journal", "region/repeat",
		"region/rules", "region/store"},
		"says on what terms the store is used, and neither decides nor moves anything"},
	"region/rights": {[]string{"algorithms", "allocator", "allocator/exchange", "policy",
		"proto/hint/v1", "region/journal", "region/peer", "region/rules", "region/store",
		"region/tenure"}, "carries out what the machine wants, and decides no request"},
	"region/admit": {[]string{"algorithms", "allocator", "allocator/exchange", "policy",
		"proto/receipt/v1", "region/held", "region/journal", "region/repeat", "region/rights",
		"region/rules", "region/store", "region/tally", "region/tenure"},
		"decides requests with the store, and asks for rights where they lack"},
	"region": {[]string{"algorithms", "allocator/exchange", "gossip", "policy", "policy/barrier", "proto/hint/v1",
		"proto/quotad/v1", "region/admit", "region/door", "region/journal", "region/peer", "region/repeat",
		"region/rights", "region/rivals", "region/rules", "region/store", "region/tally",
		"region/tenure"}, "puts a node together; fronts and networks are put before and under it from outside"},
	"region/authz": {[]string{"policy/files", "policy/strictyaml", "quantity", "region/admit"},
		"what a proxy says, as requests"},
	"region/tracing": {[]string{"region/admit"}, "tells a collector what was decided"},
	"region/console": {nil, "the files of a page, which knows a node by its admin listener alone"},
	"region/api": {[]string{"calendar", "algorithms", "policy", "policy/barrier", "proto/quotad/v1", "region",
		"region/access", "region/admit", "region/audit", "region/authz", "region/console", "region/door", "region/repeat",
		"region/rules", "region/store", "region/tally", "region/tenure", "region/tracing", "region/view"}, "a front of one node"},
	"client": {[]string{"algorithms", "proto/quotad/v1", "region/held"},
		"in other people's processes: what it holds, it holds as a node does"},
	"client/internal/ask": {[]string{"client"}, "what both of the next two do"},
	"client/httplimit": {[]string{"client", "client/internal/ask", "proto/quotad/v1"},
		"stands before other people's handlers, and asks through the client alone"},
	"client/grpclimit": {[]string{"client", "client/internal/ask", "proto/quotad/v1"},
		"stands before other people's handlers, and asks through the client alone"},
	"chaos/oracle":      {nil, "the judge must not believe the code that it judges"},
	"chaos/bubble":      {nil, "virtual time, for tests"},
	"chaos/lab/servers": {[]string{"algorithms"}, "starts Redis servers, for whoever has none"},
	"chaos/lab/fixtures": {[]string{"chaos/lab/servers"},
		"starts what tests need, and ends it with them"},
	"chaos/lab": {[]string{"algorithms", "chaos/lab/servers", "region/journal/disk",
		"region/store"}, "stands behind the seams of a node, and drives none"},
	"chaos/lab/collector": {nil, "takes the spans of traces, whoever sends them"},
	"chaos/lab/network":   {[]string{"region/link"}, "a network knows nothing of what it carries"},
	"chaos/lab/documents": {[]string{"policy"}, "writes limits documents for tests"},
	"chaos/lab/journals": {[]string{"chaos/lab", "region/journal"},
		"opens journals on disks in memory"},
	"chaos/lab/node": {[]string{"allocator/exchange", "policy", "region", "region/admit",
		"region/rights", "region/store", "region/tenure"}, "steps whole nodes by hand"},
	"chaos/load":           {nil, "offers load to anything"},
	"chaos/workload":       {nil, "demand as plain data"},
	"chaos/baseline":       {[]string{"chaos/oracle", "chaos/workload"}, "rivals on the same requests"},
	"chaos/baseline/envoy": {nil, "a judge of answers to Envoy: it must believe none of our code"},
	"chaos/sim": {[]string{"algorithms", "allocator", "allocator/exchange", "chaos/baseline",
		"chaos/lab", "chaos/lab/journals", "chaos/lab/node", "chaos/lab/servers", "chaos/oracle",
		"chaos/workload", "policy", "policy/barrier", "proto/hint/v1",
		"region", "region/admit", "region/journal", "region/peer", "region/rights", "region/store"},
		"plays whole regions in virtual time, and judges them from outside"},
	"chaos/report": {nil, "draws what it is given"},
	"chaos/caller": {[]string{"chaos/oracle", "proto/quotad/v1"},
		"calls nodes as services do: it must believe none of their code"},
	"chaos/staging": {[]string{"chaos/caller", "chaos/oracle", "chaos/scenario",
		"policy/files", "policy/strictyaml", "region/peer"},
		"calls a deployment that runs already, at its API and its peer port"},
	"chaos/process": {[]string{"chaos/caller", "chaos/load", "chaos/oracle"},
		"starts real processes and judges them from outside: it must believe none of their code"},
	"chaos/scenario": {[]string{"chaos/load", "chaos/oracle", "chaos/process",
		"chaos/report", "policy", "policy/strictyaml"},
		"judges a record that anybody may have filled: it must believe none of what runs"},
	"chaos/scenarios":    {nil, "files"},
	"chaos/mutants":      {nil, "patches of the source"},
	"chaos/mutants/hunt": {[]string{"chaos/mutants"}, "a command"},
	"chaos/mutants/seeds": {[]string{"algorithms", "chaos/baseline", "chaos/sim",
		"chaos/workload"}, "the simulator alone, which builds quickly"},
	"chaos/world": {[]string{"allocator/exchange", "chaos/lab/network",
		"chaos/lab/servers", "chaos/load", "chaos/oracle", "policy", "region", "region/admit",
		"region/journal", "region/store"}, "builds whole regions"},
	"proto/hint/v1":    {nil, "generated"},
	"proto/peer/v1":    {[]string{"proto/quotad/v1"}, "generated; nodes tell each other what operators see"},
	"proto/quotad/v1":  {nil, "generated"},
	"proto/receipt/v1": {nil, "generated"},
	"cmd/quotad/exit": {[]string{"cmd/quotad/show", "policy/strictyaml"},
		"errors with their codes, in the words of a command"},
	"cmd/quotad/remote": {[]string{"cmd/quotad/contexts", "cmd/quotad/exit", "cmd/quotad/show", "policy/files"},
		"calls a node as anybody may, and knows none of its code"},
	"cmd/quotad/show": {nil, "writes for people"},
	"cmd/quotad/nodeconfig": {[]string{"cmd/quotad/show", "policy", "policy/files",
		"policy/strictyaml", "region", "region/api", "region/door", "region/peer", "region/rights",
		"region/store"}, "settings, in the types of what is set"},
	"cmd/quotad/build":    {[]string{"policy/zones"}, "what this binary is"},
	"cmd/quotad/contexts": {[]string{"policy/files", "policy/strictyaml"}, "a person's own settings"},
	"cmd/quotad/top": {[]string{"cmd/quotad/show", "policy", "region/api", "region/view"},
		"shows what nodes tell"},
	"cmd/quotad/dev": {[]string{"chaos/lab/network", "chaos/lab/servers", "chaos/world",
		"cmd/quotad/show", "policy", "region/admit", "region/api", "region/door"},
		"keeps a small world running"},
	"cmd/quotad/serving": {[]string{"chaos/lab/servers", "cmd/quotad/build", "cmd/quotad/exit",
		"cmd/quotad/nodeconfig", "cmd/quotad/show", "policy", "policy/files", "region",
		"region/access", "region/admit", "region/api", "region/audit", "region/authz", "region/door", "region/journal", "region/link", "region/peer",
		"region/rights", "region/store", "region/tracing"}, "puts a node together"},
	"cmd/quotad/authority": {[]string{"cmd/quotad/exit", "cmd/quotad/show", "policy/files",
		"region/peer"}, "makes certificates that region/peer takes"},
	"cmd/quotad/rehearsal": {[]string{"chaos/process", "chaos/report", "chaos/scenario",
		"chaos/scenarios", "chaos/staging", "cmd/quotad/exit", "cmd/quotad/show", "policy/files"},
		"plays scenarios"},
	"cmd/quotad/simulation": {[]string{"algorithms", "chaos/baseline", "chaos/sim",
		"chaos/workload", "cmd/quotad/build", "cmd/quotad/exit", "cmd/quotad/show"}, "plays seeds"},
	"cmd/quotad/bench": {[]string{"algorithms", "chaos/process", "cmd/quotad/build",
		"cmd/quotad/exit", "cmd/quotad/show", "proto/quotad/v1"},
		"measures processes from outside, beside servers that share nothing with them"},
	"deploy/checks":     {nil, "tests alone, in a module of its own"},
	"deploy/monitoring": {nil, "files"},
	"cmd/quotad": {[]string{"algorithms", "allocator", "chaos/lab/servers", "chaos/scenario",
		"chaos/scenarios", "chaos/world", "cmd/quotad/authority", "cmd/quotad/bench",
		"cmd/quotad/build", "cmd/quotad/contexts", "cmd/quotad/dev", "cmd/quotad/exit", "cmd/quotad/nodeconfig",
		"cmd/quotad/rehearsal", "cmd/quotad/remote", "cmd/quotad/serving", "cmd/quotad/show",
		"cmd/quotad/simulation", "cmd/quotad/top", "deploy/monitoring",
		"policy", "policy/barrier", "policy/envoyimport", "policy/files", "policy/zones",
		"region/access", "region/api", "region/held", "region/peer", "region/store", "region/view"},
		"commands"},
}

// pure packages have no clock, goroutine, random source, logger or I/O. These imports would bring
// one in.
var (
	pure   = []string{"algorithms", "allocator", "allocator/exchange"}
	impure = []string{"time", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "os",
		"io", "net", "sync", "context"}
)

func TestImportsRunOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		rule, known := house[pkg]
		if !known {
			t.Errorf("%s: package %s has no place in the house: add it to the table with its reason", rel, pkg)
			return nil
		}
		seen[pkg] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if slices.Contains(pure, pkg) {
			ast.Inspect(parsed, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(id.Name, "float") {
					t.Errorf("%s has a %s: its results differ between CPUs", rel, id.Name)
				}
				if _, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s starts a goroutine, and %s is pure", rel, pkg)
				}
				return true
			})
		}
		for _, imported := range parsed.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			ours, ok := strings.CutPrefix(name, modulePath)
			if ok && ours != everywhere && !slices.Contains(rule.may, ours) {
				t.Errorf("%s imports %s: %s", rel, ours, rule.why)
			}
			if slices.Contains(pure, pkg) && slices.Contains(impure, name) {
				t.Errorf("%s imports %s, and %s is pure", rel, name, pkg)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range house {
		if !seen[pkg] {
			t.Errorf("the house has a place for %s, which is not there", pkg)
		}
	}
}

// TestBubblesAreOnOneProcessor: see package bubble for the reason.
func TestBubblesAreOnOneProcessor(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || call.Sel.Name != "Test" {
				return true
			}
			if of, ok := call.X.(*ast.Ident); ok && of.Name == "synctest" {
				t.Errorf("%s calls synctest.Test: call bubble.Test, under which the race detector does not crash", file)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNodesKnowNoImitation: serving code and its tests reach Redis only through connections or the
// seam of package store. Only chaos/lab/servers and the clock of chaos/process use the imitation of
// a Redis.
func TestNodesKnowNoImitation(t *testing.T) {
	allowed := []string{"chaos/lab/servers", "chaos/process"}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") {
			return err
		}
		rel, err := filepath.Rel(root, path.Dir(filepath.ToSlash(file)))
		if err != nil || slices.Contains(allowed, filepath.ToSlash(rel)) {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range parsed.Imports {
			for _, imitation := range []string{"alicebob/miniredis", "yuin/gopher-lua"} {
				if strings.Contains(imported.Path.Value, imitation) {
					t.Errorf("%s imports %s: start it with chaos/lab/servers", file,
						imported.Path.Value)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// served are the folders of the packages that run in production. They import no test double, so no
// fault and no change of the lab can affect them.
var served = []string{"algorithms", "allocator", "client", "gossip", "policy", "proto", "quantity", "region"}

// leaves are what the doubles of chaos/lab may import: seams, and the packages in whose types a
// seam is written. A double that imported what is above its seam would make an import cycle with
// that package's own tests, and could use the behaviour with which it is to be compared.
var leaves = map[string]string{
	everywhere:            "types of numbers",
	"algorithms":          "the scripts that the twin answers",
	"region/store":        "the seam of the store",
	"region/journal/disk": "the seam of the journal",
	"region/link":         "deadlines of connections",
	"chaos/lab/servers":   "another double",
}

// TestWhatServesKnowsNoLab: serving code imports neither chaos nor an imitation of Redis, and
// chaos/lab imports only leaves.
func TestWhatServesKnowsNoLab(t *testing.T) {
	files := 0
	forEachServingFile(t, func(pkg, file string, imports []string) {
		files++
		for _, name := range imports {
			ours, local := strings.CutPrefix(name, modulePath)
			switch {
			// These put a node together.
			case slices.Contains([]string{"chaos/lab/node", "chaos/lab/journals",
				"chaos/lab/documents"}, pkg):
			case isUnder(pkg, "chaos/lab"):
				if _, leaf := leaves[ours]; local && !leaf {
					t.Errorf("%s imports %s, which is no leaf", file, ours)
				}
			case !slices.ContainsFunc(served,
				func(folder string) bool { return isUnder(pkg, folder) }):
			case local && (isUnder(ours, "chaos") || isUnder(ours, "cmd")):
				t.Errorf("%s imports %s, and it serves", file, ours)
			case strings.Contains(name, "alicebob/miniredis"), strings.Contains(name,
				"yuin/gopher-lua"):
				t.Errorf("%s imports %s, and it serves", file, name)
			}
		}
	})
	if files < 100 {
		t.Errorf("only %d files were looked at", files)
	}
	// The packages that a leaf imports are below it too. None of them may import what is above the
	// seams.
	for leaf := range leaves {
		for _, below := range house[leaf].may {
			if _, known := leaves[below]; !known {
				t.Errorf("%s is no leaf: it imports %s", leaf, below)
			}
		}
	}
}

// isUnder says whether a package is in a folder of the module or below it.
func isUnder(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// forEachServingFile calls fn with every Go file that is not a test, and its imports.
func forEachServingFile(t *testing.T, fn func(pkg, file string, imports []string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, imported := range parsed.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, name)
		}
		fn(path.Dir(filepath.ToSlash(rel)), rel, imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
