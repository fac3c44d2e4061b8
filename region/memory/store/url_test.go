package store

import (
	"reflect"
	"strings"
	"testing"
)

// TestParseURL: every form of a redis.url.
func TestParseURL(t *testing.T) {
	for url, want := range map[string]Address{
		"redis://127.0.0.1:6379": {servers: []string{"127.0.0.1:6379"}},
		"redis://localhost":      {servers: []string{"localhost:6379"}},
		"redis://[::1]/2":        {servers: []string{"[::1]:6379"}, database: 2},
		"rediss://user:p%40ss@redis.test:1/15": {servers: []string{"redis.test:1"}, secure: true,
			database: 15, login: login{"user", "p@ss"}},
		"redis://:only@h:1/": {servers: []string{"h:1"}, login: login{"", "only"}},
		"redis+sentinel://a:1,b:2,[::1]/mymaster": {kind: sentinel, servers: []string{"a:1", "b:2",
			"[::1]:26379"},
			master: "mymaster"},
		"rediss+sentinel://u:p@a:1/m?db=3&sentinel_user=s&sentinel_password=%26": {kind: sentinel,
			secure: true, servers: []string{"a:1"},
			master: "m", database: 3, login: login{"u", "p"}, sentinelsLogin: login{"s", "&"}},
		"redis+cluster://a:1,b:2": {kind: cluster, servers: []string{"a:1", "b:2"}},
		"rediss+cluster://u:p@a:1/?": {kind: cluster, secure: true, servers: []string{"a:1"},
			login: login{"u", "p"}},
	} {
		got, err := ParseURL(url)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", url, got, err, want)
		}
		if text := got.String(); strings.Contains(text, "u:p") || strings.Contains(text, "@") ||
			got.Encrypted() != strings.HasPrefix(url, "rediss") {
			t.Errorf("%s is shown as %s", url, text)
		}
	}
}

// faultyURLs hold the password "hunter2" or a part of it in every place where a parser may take it
// for something else.
var faultyURLs = []string{
	"redis+sentinel://127.0.0.1:26379", "redis+sentinel://127.0.0.1:26379/m?x=1",
	"redis+sentinel://a:1/m?db=first", "redis+sentinel://a:1/m?db=1&db=2",
	"redis+cluster://127.0.0.1:7000/1", "redis+cluster://127.0.0.1:7000?db=1", "redis+cluster://",
	"redis+cluster://a:1,,b:2", "redis://a:1,b:2",
	"redis://:0", "redis://a:65536", "redis+other://a:1", "redissss://a:1",
	"redis://:hunter2?x@127.0.0.1:1", "redis://:hunter2#x@127.0.0.1:1",
	"redis+sentinel://:hunter2/x@a:1/m", "hunter2@127.0.0.1:1", "hunter2://127.0.0.1@x",
	"redis+sentinel://a:1/m?sentinel_password=hunter2@%zz",
	"redis+sentinel://a:1/m?sentinel_pass=hunter2", "redis+cluster://u:hunter2%zz@a:1",
	"redis://u:hunter2@a:b",
}

// TestFaultyURLs: what is wrong with a URL is said with how to write it, and without a password.
func TestFaultyURLs(t *testing.T) {
	for _, url := range faultyURLs {
		_, err := ParseURL(url)
		if err == nil {
			t.Errorf("url %q is taken", url)
			continue
		}
		if !strings.Contains(err.Error(), urlForms) || strings.Contains(err.Error(), "hunter") ||
			strings.Contains(err.Error(), "er2") {
			t.Errorf("url %q: %q", url, err)
		}
	}
}

// FuzzParseURL: no text makes the parser fall over, and what it takes names servers.
func FuzzParseURL(f *testing.F) {
	for _, url := range faultyURLs {
		f.Add(url)
	}
	f.Add("rediss+sentinel://u:p@a:1,b/m?db=3&sentinel_user=s&sentinel_password=%26")
	f.Fuzz(func(t *testing.T, url string) {
		if a, err := ParseURL(url); err == nil && (len(a.servers) == 0 || a.String() == "") {
			t.Errorf("%q: %+v", url, a)
		}
	})
}
