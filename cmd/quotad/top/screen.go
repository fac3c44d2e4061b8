package top

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/quotad/quotad/region/api"
)

// Fetch asks a node for an overview.
type Fetch func() (api.Overview, error)

// Watch draws reports on a terminal, a new one at each interval, until q or Ctrl+C is typed or ctx
// ends. A failure to ask is shown and asked again.
func Watch(ctx context.Context, in io.Reader, out io.Writer, every time.Duration, fetch Fetch) error {
	_, err := tea.NewProgram(&screen{fetch: fetch, every: every, width: 80, height: 24},
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out)).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// screen is what the terminal shows.
type screen struct {
	fetch         Fetch
	every         time.Duration
	before        *api.Overview // nil: there is no overview yet
	report        *Report       // nil: there were no two overviews yet
	err           error         // of the last attempt
	width, height int
}

type (
	fetched struct {
		overview api.Overview
		err      error
	}
	next struct{}
)

// ask asks for an overview.
func (s *screen) ask() tea.Msg {
	o, err := s.fetch()
	return fetched{o, err}
}

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return s.ask }

// Update implements tea.Model.
func (s *screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" || k == "esc" {
			return s, tea.Quit
		}
	case next:
		return s, s.ask
	case fetched:
		s.take(m)
		return s, tea.Tick(s.every, func(time.Time) tea.Msg { return next{} })
	}
	return s, nil
}

// take takes in an overview. One that is as old as the last is passed over.
func (s *screen) take(f fetched) {
	s.err = f.err
	if f.err != nil || s.before != nil && !f.overview.At.After(s.before.At) {
		return
	}
	if s.before != nil {
		r := Of(*s.before, f.overview)
		s.report = &r
	}
	s.before = &f.overview
}

// View implements tea.Model.
func (s *screen) View() tea.View {
	v := tea.NewView(s.text())
	v.AltScreen = true
	return v
}

// text returns what fits the terminal.
func (s *screen) text() string {
	var b strings.Builder
	fmt.Fprint(&b, "quotad top (q ends it)  ")
	switch {
	case s.err != nil:
		fmt.Fprintf(&b, "%s\n\n", s.err)
	case s.report == nil:
		fmt.Fprint(&b, "waiting for the second answer\n")
	}
	if s.report != nil {
		_ = s.report.Print(&b) // a Builder takes everything
	}
	lines := strings.Split(b.String(), "\n")
	lines = lines[:min(len(lines), max(s.height, 1))]
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, s.width, "")
	}
	return strings.Join(lines, "\n")
}
