// Package draw draws on a terminal.
package draw

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// Screen draws lines on a terminal, each drawing in the place of the one before: on the terminal's
// other screen, each line cut to the width that the terminal has now, so that none wraps and none
// stays.
type Screen struct {
	Out   io.Writer
	Size  func() (width, height int) // of the terminal; nil: that of Out
	drawn bool                       // the terminal shows the drawing, and not what was there before
}

// Draw draws the lines that fit.
func (s *Screen) Draw(lines []string) {
	var b strings.Builder
	if !s.drawn {
		s.drawn = true
		b.WriteString("\x1b[?1049h") // the other screen
	}
	width, height := s.size()
	b.WriteString("\x1b[H")
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(ansi.Truncate(line, width, "") + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	fmt.Fprint(s.Out, b.String())
}

// Leave shows again what was on the terminal before the drawing.
func (s *Screen) Leave() {
	if s.drawn {
		s.drawn = false
		fmt.Fprint(s.Out, "\x1b[?1049l")
	}
}

// size returns the size of the terminal, or that of most if it does not tell.
func (s *Screen) size() (width, height int) {
	if s.Size != nil {
		return s.Size()
	}
	if f, ok := s.Out.(*os.File); ok {
		if width, height, err := term.GetSize(f.Fd()); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}
