// Package contexts keeps the nodes that a person's commands call, by name, in a file of that
// person: addresses, and the paths of what proves who calls. Tokens themselves are never in it.
package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/strictyaml"
)

// Context says how to call a node. An empty text stands for the default.
type Context struct {
	Name      string
	API       string // address of the API
	Admin     string // address of the admin listener
	CA        string // file of the authorities that the node's certificate may be of
	Cert, Key string // files of the certificate that says who calls
	TokenFile string
}

// File is all contexts of a person.
type File struct {
	Current  string // name of the one in use; empty: none is
	Contexts []Context
}

// MaxContexts bounds the contexts of a file.
const MaxContexts = 256

var kind = strictyaml.Kind{MaxBytes: 256 << 10,
	TooLarge: "check the path: a contexts file has a few lines for each context",
	Empty:    mendFile, TooDeep: "a contexts file is a map of contexts"}

const mendFile = "write it by: quotad context add NAME --admin ADDRESS"

var nameForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// CheckName returns an error if a context may not have the name.
func CheckName(name string) error {
	if nameForm.MatchString(name) {
		return nil
	}
	return fmt.Errorf("a context cannot be named %.70q; use up to 63 letters, digits and . _ -", name)
}

// Path returns where the file of this person is.
func Path() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("contexts have no folder: %w; set XDG_CONFIG_HOME", err)
	}
	return filepath.Join(folder, "quotad", "contexts.yaml"), nil
}

// Load reads a file. One that is not there has no contexts.
func Load(path string) (File, error) {
	src, err := files.Read(path, kind.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return File{}, nil
	case err != nil && !errors.Is(err, files.ErrTooLarge): // Read reports that
		return File{}, fmt.Errorf("read the contexts: %w", err)
	}
	root, err := strictyaml.Read(path, src, kind)
	if err != nil {
		return File{}, err
	}
	f := read(root)
	return f, root.Err()
}

func read(root strictyaml.Value) (f File) {
	o, ok := root.Object(mendFile, []string{"current", "contexts"})
	if !ok {
		return f
	}
	if v, given := o.Field("current"); given {
		f.Current, _ = v.Text(mendFile)
	}
	v, given := o.Field("contexts")
	if !given {
		return f
	}
	entries, _ := v.Entries(mendFile)
	if len(entries) > MaxContexts {
		v.Fail(fmt.Sprintf("has %d contexts, at most %d are read", len(entries), MaxContexts),
			"remove some by: quotad context remove NAME")
		return f
	}
	for _, e := range entries {
		if err := CheckName(e.Name); err != nil {
			e.Value.Fail(err.Error(), mendFile)
			continue
		}
		c := Context{Name: e.Name}
		fields, ok := e.Value.Object(mendFile, fieldNames())
		if !ok {
			continue
		}
		for _, one := range c.fields() {
			if v, given := fields.Field(one.name); given {
				*one.text, _ = v.Text(mendFile)
			}
		}
		f.Contexts = append(f.Contexts, c)
	}
	return f
}

// field is one of a context's texts.
type field struct {
	name string
	text *string
}

func (c *Context) fields() []field {
	return []field{{"api", &c.API}, {"admin", &c.Admin}, {"ca", &c.CA}, {"cert", &c.Cert},
		{"key", &c.Key}, {"token_file", &c.TokenFile}}
}

func fieldNames() (names []string) {
	for _, one := range new(Context).fields() {
		names = append(names, one.name)
	}
	return names
}

// Find returns the context of a name.
func (f File) Find(name string) (Context, error) {
	for _, c := range f.Contexts {
		if c.Name == name {
			return c, nil
		}
	}
	var names []string
	for _, c := range f.Contexts {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return Context{}, fmt.Errorf("there is no context %.70q, and no other; add one with quotad context add", name)
	}
	return Context{}, fmt.Errorf("there is no context %.70q; %s", name,
		strictyaml.DidYouMean(name, names))
}

// Put adds a context, in the place of one of the same name.
func (f *File) Put(c Context) error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if i := slices.IndexFunc(f.Contexts, func(o Context) bool { return o.Name == c.Name }); i >= 0 {
		f.Contexts[i] = c
		return nil
	}
	if len(f.Contexts) == MaxContexts {
		return fmt.Errorf("there are %d contexts already; remove one first", MaxContexts)
	}
	f.Contexts = append(f.Contexts, c)
	return nil
}

// Remove removes a context.
func (f *File) Remove(name string) error {
	if _, err := f.Find(name); err != nil {
		return err
	}
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
	return nil
}

// Save writes a file that only this person may read, whole or not at all.
func (f File) Save(path string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# How quotad's commands call nodes; quotad context writes it.\ncurrent: %s\ncontexts:\n",
		strconv.Quote(f.Current))
	for _, c := range f.Contexts {
		fmt.Fprintf(&b, "  %s:\n", strconv.Quote(c.Name))
		for _, one := range c.fields() {
			if *one.text != "" {
				fmt.Fprintf(&b, "    %s: %s\n", one.name, strconv.Quote(*one.text))
			}
		}
	}
	if len(f.Contexts) == 0 {
		b.Truncate(b.Len() - 1)
		b.WriteString(" {}\n")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write the contexts: %w", err)
	}
	next, err := os.CreateTemp(filepath.Dir(path), "contexts-*.yaml")
	if err != nil {
		return fmt.Errorf("write the contexts: %w", err)
	}
	_, err = next.Write(b.Bytes())
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the contexts: %w", errors.Join(err, os.Remove(next.Name())))
	}
	return nil
}
