package store

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestScriptCommands: MinimalACL gives the rights to all commands that scripts call and no others,
// and rights.lua tries every one of them.
func TestScriptCommands(t *testing.T) {
	called := map[string]bool{}
	for _, s := range []algorithms.Script{algorithms.DecideScript, algorithms.LendScript,
		algorithms.CreditScript, algorithms.InspectScript,
		algorithms.SettleScript, algorithms.ResetScript, algorithms.RecallScript,
		algorithms.RestoreScript, algorithms.BookScript, algorithms.AssignScript,
		algorithms.OpenScript, algorithms.AdoptScript, algorithms.NoteScript,
		algorithms.NodesScript} {
		for _, m := range regexp.MustCompile(
			`redis\.p?call\('(\w+)'`).FindAllStringSubmatch(s.Source, -1) {
			called[strings.ToLower(m[1])] = true
		}
		if strings.Count(s.Source,
			"redis.") != len(regexp.MustCompile(`redis\.p?call\('`).FindAllString(s.Source, -1)) {
			t.Errorf("script %s calls something whose name is not written there", s.Name)
		}
	}
	tried := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^try\('(\w+)'`).FindAllStringSubmatch(rightsLua, -1) {
		tried[m[1]] = true
	}
	for name, of := range map[string]map[string]bool{"scripts call": called,
		"rights.lua tries": tried} {
		for command := range of {
			if !slices.Contains(scriptCommands, command) {
				t.Errorf("%s %s, to which MinimalACL gives no right", name, command)
			}
		}
		for _, command := range scriptCommands {
			if !of[command] {
				t.Errorf("MinimalACL gives a right to %s, but not one of what %s is that", command,
					name)
			}
		}
	}
}

// TestTryRights: before anything is charged, a user who lacks a right is told which one, on every
// kind of server.
func TestTryRights(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"standalone", "cluster", "behind Sentinels"} {
		t.Run(on, func(t *testing.T) {
			var url string
			var admin *redis.Client
			switch on {
			case "standalone":
				server := fixtures.Process(t)
				url, admin = server.URL, fixtures.Operator(t, server)
			case "cluster":
				server := fixtures.Started(t)(servers.StartCluster(t.Context(), 2))
				url, admin = server.URL, masters(t, server)[1] // rights are a server's own
				suite.Must(t, masters(t, server)[0].Do(t.Context(),
					append([]any{"ACL", "SETUSER", "node", ">horse"}, all(MinimalACL)...)...).Err())
			default:
				at, master, _ := watched(t)
				url, admin = at, fixtures.Operator(t, master)
			}
			url = strings.Replace(url, "://", "://node:horse@", 1)
			var lacks []string
			try := func(rules []string) (err error) {
				suite.Must(t, admin.Do(t.Context(),
					append([]any{"ACL", "SETUSER", "node", "reset", ">horse"},
						all(strings.Join(rules, " "))...)...).Err(),
					admin.ScriptFlush(t.Context()).Err())
				lacks, err = connect(t, Options{URL: url}).TryRights(t.Context())
				return err
			}
			rules := strings.Fields(MinimalACL)
			if err := try(rules); err != nil || len(lacks) > 0 {
				t.Fatalf("with all rights: %v, lacks %v", err, lacks)
			}
			for _, rule := range rules {
				if rule == "on" || rule == "-@all" || rule == "+cluster|slots" {
					continue
				}
				err := try(slices.DeleteFunc(slices.Clone(rules),
					func(r string) bool { return r == rule }))
				if slices.Contains(spare, rule) {
					if err != nil || !slices.Equal(lacks, []string{rule}) {
						t.Errorf("without %s, which can be spared: %v, lacks %v", rule, err, lacks)
					}
					continue
				}
				var e *Error
				if !errors.As(err, &e) || e.Kind != "NOPERM" || !strings.Contains(e.Err.Error(),
					rule) ||
					e.Server != admin.Options().Addr || !strings.Contains(err.Error(), MinimalACL) {
					t.Errorf("without %s: %v", rule, err)
				}
				if Unreached(err) {
					t.Errorf("without %s: taken for a server that does not answer", rule)
				}
				if e != nil && strings.HasPrefix(rule, "+") &&
					e.Err.Error() != "NOPERM its user lacks the rights "+rule {
					t.Errorf("without %s alone: %v", rule, e.Err)
				}
			}
			keys, err := admin.Keys(t.Context(), "*").Result()
			for _, key := range keys {
				if !strings.Contains(key, ":try") || admin.PTTL(t.Context(), key).Val() < 0 {
					t.Errorf("left behind: %s", key)
				}
			}
			suite.Must(t, err)
		})
	}
}

func all(rules string) (args []any) {
	for _, rule := range strings.Fields(rules) {
		args = append(args, rule)
	}
	return args
}

// TestTryRightsSaysWhatElseIsRefused: a refusal for another reason has its own kind.
func TestTryRightsSaysWhatElseIsRefused(t *testing.T) {
	t.Parallel()
	for word, p := range provocations {
		t.Run(word, func(t *testing.T) {
			server := fixtures.Process(t)
			s, client := node(t, server, first), fixtures.Operator(t, server)
			p.bring(t, client)
			var e *Error
			if _, err := s.TryRights(t.Context()); !errors.As(err, &e) || e.Kind != word ||
				!strings.Contains(err.Error(), p.next) {
				t.Errorf("%v, want %s", err, word)
			}
		})
	}
}
