package dev

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
)

// boxWidth is what is inside a box, so that it fits 80 columns.
const boxWidth = 76

// box says what runs, what it is not, and what to type next.
func box(out io.Writer, o Options, all allPorts) {
	edge := "+" + strings.Repeat("-", boxWidth+2) + "+"
	line := func(text string) {
		fmt.Fprintf(out, "| %s%s |\n", text, strings.Repeat(" ", max(boxWidth-utf8.RuneCountInString(text), 0)))
	}
	fmt.Fprintln(out, edge)
	line(fmt.Sprintf("quotad dev: %s in this process, for trying out",
		show.Counted(len(all), "region")))
	line("Not for production: embedded Redis, nothing is kept, no TLS, no roles.")
	if len(all) > 1 {
		line(fmt.Sprintf("%s round trip between any two regions.", show.Span(o.RoundTrip)))
	}
	line("")
	for _, p := range all {
		line(fmt.Sprintf("%-12s HTTP %-15s gRPC %-15s admin %s", show.Name(p.region), address(p.http),
			address(p.grpc), address(p.admin)))
	}
	line("")
	line("Console: " + all[0].consoleAddress())
	fmt.Fprintln(out, edge)
	fmt.Fprintln(out, "\nTry, in another terminal:")
	for _, text := range next(o.Document, all) {
		fmt.Fprintf(out, "\n  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
	}
	fmt.Fprintln(out, "\nCtrl+C ends it.")
}

// next returns what to type next, for the first limit of a document.
func next(d *policy.Document, all allPorts) (commands []string) {
	l := &d.Limits[0]
	var body, words []string
	for _, c := range l.Match {
		body = append(body, fmt.Sprintf("%q:%q", c.Name, c.Value))
	}
	for _, name := range l.Key {
		body = append(body, fmt.Sprintf(`%q:"42"`, name))
		words = append(words, name+"=42")
	}
	admin := ""
	if port := address(all[0].admin); port != "localhost:8083" {
		admin = " --addr http://" + port
	}
	commands = append(commands,
		fmt.Sprintf("# %d are admitted in %s worldwide, then 429\nfor i in $(seq %d); do curl -s -o /dev/null -w '%%{http_code}\\n' \\\n"+
			"  -H 'Content-Type: application/json' http://%s/v1/check \\\n"+
			"  -d '{\"domain\":%q,\"descriptors\":{%s}}'; done", l.Limit, windowWords(l),
			min(l.Limit+2, 1000), address(all[0].http), l.Domain, strings.Join(body, ",")),
		fmt.Sprintf("# why, and what each region holds\nquotad explain %s %s%s", l.Name,
			strings.Join(words, " "), admin))
	if len(all) > 1 {
		commands = append(commands, fmt.Sprintf(
			"# cut %s off from %s for 30 s, and see what the regions make of it\nquotad cut %s --for 30s%s; quotad status --all%s",
			all[0].region, all[1].region, all[1].region, admin, admin))
	}
	return append(commands, "# limits and hottest keys, live\nquotad top"+admin)
}

// windowWords returns a limit's window as people say it.
func windowWords(l *policy.Limit) string {
	if l.Period != "" {
		return "a window"
	}
	return policy.FormatWindow(l.Window)
}
