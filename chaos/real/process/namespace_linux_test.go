//go:build !race

package process

import (
	"errors"
	"flag"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// needNamespace has a test fail that cannot have a network namespace, instead of being skipped. make
// attacks passes it.
var needNamespace = flag.Bool("namespace", false, "tests fail that cannot have a network namespace")

// namespaced names the program of the nodes in the process that is in a test's network namespace.
const namespaced = "QUOTAD_TEST_NAMESPACE"

// beyond are addresses that are not loopback. They lead to this machine in a test's namespace.
var beyond = netip.MustParsePrefix("10.0.0.0/8")

// inNamespace runs a test once more, as a process in a network namespace of its own, in which beyond
// leads to this machine. In that process it returns the program of the nodes, and the test does its
// work; otherwise nothing.
func inNamespace(t *testing.T) (quotad string) {
	t.Helper()
	if quotad = os.Getenv(namespaced); quotad != "" {
		suite.Must(t, raiseAddresses())
		return quotad
	}
	suite.Long(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), namespaced+"="+binary(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if id := os.Geteuid(); id != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		if *needNamespace {
			t.Fatalf("no network namespace can be made: %v", err)
		}
		t.Skipf("no network namespace can be made: %v", err)
	}
	if t.Logf("%s", out); err != nil {
		t.Errorf("in the namespace: %v", err)
	}
	return ""
}

// raiseAddresses gives the loopback interface its own addresses and those of beyond.
func raiseAddresses() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	set := func(name string, what uint, value func(*unix.Ifreq) error) {
		r, e := unix.NewIfreq(name)
		if e == nil {
			e = value(r)
		}
		if e == nil {
			e = unix.IoctlIfreq(socket, what, r)
		}
		err = errors.Join(err, e)
	}
	set("lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil })
	first := beyond.Addr().Next().As4()
	set("lo:1", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(first[:]) })
	mask := [4]byte{255}
	set("lo:1", unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask[:]) })
	return err
}
