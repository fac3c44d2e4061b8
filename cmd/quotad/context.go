package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/contexts"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

func contextCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "context",
		Short: "Name the nodes that commands call",
		Long: `A context says how to call a node: its addresses, and the files of what proves who calls. Contexts are in
quotad/contexts.yaml of your folder of settings ($XDG_CONFIG_HOME, or ~/.config); tokens are not, only the paths of
their files. For each command, a flag goes before the environment (QUOTAD_ADDR for the admin listener, QUOTAD_API_ADDR
for the API, QUOTAD_TOKEN), that before the context, and that before the default, which is a node on this machine.`,
	}, contextAddCommand(), contextListCommand(), contextUseCommand(), contextRemoveCommand())
}

func contextAddCommand() *cobra.Command {
	var c contexts.Context
	cmd := &cobra.Command{
		Use:     "add NAME",
		Short:   "Add a context or replace it, and use it if none is in use",
		Example: "  quotad context add prod-eu --admin https://quotad.eu.example:8083 --ca ca.pem --token-file ~/.quotad-token",
		Args:    one("name", "prod-eu --admin https://quotad.eu.example:8083"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.Name = args[0]
			if c == (contexts.Context{Name: c.Name}) {
				return exit.Usage(fmt.Errorf("say how to call the node: give --admin, --api or another flag"))
			}
			for _, file := range []*string{&c.CA, &c.Cert, &c.Key, &c.TokenFile} {
				if err := absolute(file); err != nil {
					return err
				}
			}
			return changeContexts(func(f *contexts.File) error {
				if f.Current == "" {
					f.Current = c.Name
				}
				return f.Put(c)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Admin, "admin", "", "address of the admin listener, host:port or a URL")
	f.StringVar(&c.API, "api", "", "address of the HTTP API, host:port or a URL")
	f.StringVar(&c.CA, "ca", "", "certificates of the authorities that the node's may be of")
	f.StringVar(&c.Cert, "cert", "", "certificate that says who calls")
	f.StringVar(&c.Key, "key", "", "key of --cert")
	f.StringVar(&c.TokenFile, "token-file", "", "file of the token that says who calls")
	return cmd
}

// absolute makes a path hold in any folder. An empty one stays empty.
func absolute(path *string) (err error) {
	if *path != "" {
		*path, err = filepath.Abs(*path)
	}
	return err
}

func contextListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the contexts; the one in use has a star",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := contexts.Path()
			if err != nil {
				return err
			}
			f, err := contexts.Load(path)
			if err != nil {
				return exit.Invalid(path, err)
			}
			return printContexts(cmd.OutOrStdout(), f)
		},
	}
}

func printContexts(w io.Writer, f contexts.File) error {
	t := show.Table(w)
	fmt.Fprint(t, "\tNAME\tADMIN\tAPI\tTOKEN FILE\n")
	for _, c := range f.Contexts {
		star := " "
		if c.Name == f.Current {
			star = "*"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", star, show.Name(c.Name), show.Name(c.Admin),
			show.Name(c.API), show.Name(c.TokenFile))
	}
	return t.Flush()
}

func contextUseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Use a context from now on",
		Args:  one("context", "prod-eu"),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(func(f *contexts.File) error {
				_, err := f.Find(args[0])
				f.Current = args[0]
				return err
			})
		},
	}
}

func contextRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a context",
		Args:  one("context", "prod-eu"),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(func(f *contexts.File) error { return f.Remove(args[0]) })
		},
	}
}

// changeContexts reads the contexts, changes them and writes them.
func changeContexts(change func(*contexts.File) error) error {
	path, err := contexts.Path()
	if err != nil {
		return err
	}
	f, err := contexts.Load(path)
	if err != nil {
		return exit.Invalid(path, err)
	}
	if err := change(&f); err != nil {
		return exit.Usage(err)
	}
	return f.Save(path)
}
